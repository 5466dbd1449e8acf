export { type CallOptions, Client, type Methods } from "./client.js";
export { CrewdError } from "./errors.js";
export { fromJson, toJson } from "./json.js";
export { type Env, type Location, locate, type Place } from "./locate.js";
export { type Item, pages } from "./pages.js";
export { type Change, type RunCursor, watchAsks, watchRun, watchRuns, type WatchOptions } from "./watch.js";
