package crewd

import (
	"context"
	"iter"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Pages gives every item of a list, page after page, until the first error:
//
//	crewd.Pages(ctx, client.Runs.ListRuns, &crewdv1.ListRunsRequest{}, (*crewdv1.ListRunsResponse).GetRuns)
func Pages[Q proto.Message, P interface{ GetNextPageToken() string }, T any](ctx context.Context,
	list func(context.Context, Q, ...grpc.CallOption) (P, error), request Q, items func(P) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		request, token := proto.CloneOf(request), request.ProtoReflect().Descriptor().Fields().ByName("page_token")
		for more := true; more; {
			page, err := list(ctx, request)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range items(page) {
				if !yield(item, nil) {
					return
				}
			}
			more = page.GetNextPageToken() != ""
			request.ProtoReflect().Set(token, protoreflect.ValueOfString(page.GetNextPageToken()))
		}
	}
}
