export { Client, type Methods } from "./client.js";
export type { CallOptions, ConnectOptions } from "./connection.js";
export { type Code, CrewdError, type Violation } from "./errors.js";
export { type Env, type Location, locate, type Place } from "./locate.js";
export { type Item, pages } from "./pages.js";
export * from "./watch.js";
