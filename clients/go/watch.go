package crewd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	crewdv1 "crewd.dev/go/crewd/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// WatchRun gives every event of a run after the request's cursor, each once, over any restart of the
// daemon. Without kinds it is proven that none is missing, else the reason is SEQUENCE_BROKEN. It
// ends when the run is over, if the request says so. Leaving the loop ends the call and nothing else.
func (c *Client) WatchRun(ctx context.Context, request *crewdv1.WatchRunRequest) iter.Seq2[*crewdv1.Event, error] {
	return func(yield func(*crewdv1.Event, error) bool) {
		last, fromFirst := int64(0), request.AfterSequence == 0 // last: the event's number in its run
		request := proto.CloneOf(request)
		for response, err := range follow(ctx, c, c.Runs.WatchRun, request, request.StopWhenFinished) {
			if err != nil {
				yield(nil, err)
				return
			}
			request.StoreId = cmp.Or(response.GetStoreId(), request.StoreId)
			for _, event := range response.GetEvents() {
				hole := len(request.Kinds) == 0 && (last > 0 || fromFirst) && event.RunSequence != last+1
				if hole || event.Sequence <= request.AfterSequence {
					problem := fmt.Sprintf("%s: event %d (number %d of the run) came after %d (number %d)",
						event.RunId, event.Sequence, event.RunSequence, request.AfterSequence, last)
					yield(nil, &Error{Code: codes.DataLoss, Reason: "SEQUENCE_BROKEN", Message: problem})
					return
				}
				last, request.AfterSequence = event.RunSequence, event.Sequence
				if !yield(event, nil) {
					return
				}
			}
			request.AfterSequence = max(request.AfterSequence, response.GetHeartbeat().GetSequence())
		}
	}
}

// Change is what is new about the things watched.
type Change[T any] struct {
	Items      []T      // each whole, as it is now
	RemovedIDs []string // deleted, or not matching any more
	Complete   bool     // Items are all there are: so at first, and after each reconnect
}

// WatchRuns gives the matching runs, then every change of them, over any restart of the daemon.
func (c *Client) WatchRuns(ctx context.Context, filter *crewdv1.RunFilter) iter.Seq2[Change[*crewdv1.Run], error] {
	return changes(follow(ctx, c, c.Runs.WatchRuns, &crewdv1.WatchRunsRequest{Filter: filter}, false),
		(*crewdv1.WatchRunsResponse).GetRuns, (*crewdv1.WatchRunsResponse).GetRemovedRunIds)
}

// WatchAsks gives the matching asks, then every change of them, over any restart of the daemon.
func (c *Client) WatchAsks(ctx context.Context, filter *crewdv1.AskFilter) iter.Seq2[Change[*crewdv1.Ask], error] {
	return changes(follow(ctx, c, c.Asks.WatchAsks, &crewdv1.WatchAsksRequest{Filter: filter}, false),
		(*crewdv1.WatchAsksResponse).GetAsks, (*crewdv1.WatchAsksResponse).GetRemovedAskIds)
}

func changes[S any, T interface {
	comparable
	GetId() string
}](responses iter.Seq2[*S, error], items func(*S) []T, removed func(*S) []string) iter.Seq2[Change[T], error] {
	return func(yield func(Change[T], error) bool) {
		var told []T
		known, fresh := map[string]T{}, map[string]T{} // fresh: what is known anew, until that is complete
		for response, err := range responses {
			if err != nil {
				yield(Change[T]{}, err)
				return
			} else if response == nil {
				told, fresh = nil, map[string]T{}
				continue
			}
			change, current := Change[T]{Items: items(response), RemovedIDs: removed(response)}, known
			if fresh != nil {
				told, current = append(told, change.Items...), fresh
			}
			for _, item := range change.Items {
				current[item.GetId()] = item
			}
			for _, id := range change.RemovedIDs {
				delete(current, id)
			}
			if synced := any(response).(interface{ GetSynced() bool }).GetSynced(); synced && fresh != nil {
				maps.DeleteFunc(known, func(id string, _ T) bool { return fresh[id] != *new(T) })
				change = Change[T]{Complete: true, RemovedIDs: slices.Sorted(maps.Keys(known)),
					Items: slices.DeleteFunc(told, func(item T) bool { return fresh[item.GetId()] != item })}
				known, fresh = fresh, nil
			}
			if fresh == nil && (change.Complete || len(change.Items)+len(change.RemovedIDs) > 0) && !yield(change, nil) {
				return
			}
		}
	}
}

// follow gives what a stream sends, and calls anew when it breaks, with the request as it is then: a
// nil response tells so. An error is the last; so is the stream's own end, if that is wanted.
func follow[Q, S any](ctx context.Context, c *Client, call func(context.Context, Q, ...grpc.CallOption) (
	grpc.ServerStreamingClient[S], error), request Q, untilEnd bool) iter.Seq2[*S, error] {
	return func(yield func(*S, error) bool) {
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		for wait := firstWait; ; wait = min(2*wait, longestWait) {
			once, cancel := context.WithCancel(ctx)
			quiet, draining := time.AfterFunc(c.silence, cancel), false
			stream, err := call(once, request)
			for err == nil {
				var response *S
				quiet.Reset(c.silence)
				if response, err = stream.Recv(); err == nil {
					quiet.Stop()
					wait, draining = firstWait, draining || any(response).(drainer).GetDraining() != nil
					if !yield(response, nil) {
						return
					}
				}
			}
			cancel()
			if err == io.EOF && untilEnd && !draining {
				return
			} else if err == io.EOF || c.mayPass(err, codes.Unavailable, codes.Canceled) {
				if !yield(nil, nil) {
					return
				} else if c.pause(ctx, cmp.Or(of(err).RetryAfter, wait)) {
					continue
				}
				err = c.translate(cmp.Or(ctx.Err(), context.Canceled))
			}
			yield(nil, err)
			return
		}
	}
}

type drainer interface{ GetDraining() *crewdv1.Draining }
