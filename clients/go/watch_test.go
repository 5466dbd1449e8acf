package crewd

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	crewdv1 "crewd.dev/go/crewd/v1"
	"crewd.dev/go/internal/check"
)

// events gives a response with events whose sequences are ten times their numbers in the run.
func events(numbers ...int64) *crewdv1.WatchRunResponse {
	response := &crewdv1.WatchRunResponse{StoreId: "store"}
	for _, number := range numbers {
		response.Events = append(response.Events, &crewdv1.Event{Sequence: 10 * number, RunSequence: number})
	}
	return response
}

// watched reads a watch of a run to its end.
func watched(client *Client, request *crewdv1.WatchRunRequest) (numbers []int64, failed error) {
	for event, err := range client.WatchRun(context.Background(), request) {
		if failed = err; err == nil {
			numbers = append(numbers, event.RunSequence)
		}
	}
	return numbers, failed
}

func toTheEnd(kinds ...string) *crewdv1.WatchRunRequest {
	return &crewdv1.WatchRunRequest{RunId: "run_x", StopWhenFinished: true, Kinds: kinds}
}

func requests(d *daemon) (cursors []int64) {
	for _, call := range d.asked("WatchRun") {
		cursors = append(cursors, call.request.(*crewdv1.WatchRunRequest).AfterSequence)
	}
	return cursors
}

func same[T comparable](t *testing.T, got []T, want ...T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func broken(messages ...*crewdv1.WatchRunResponse) func(asked) error {
	return func(call asked) error {
		for _, message := range messages {
			call.send(message)
		}
		return status.Error(codes.Unavailable, "")
	}
}

func TestAWatchGoesOnWithEveryEventOnce(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", inTurn(broken(events(1, 2), events(3)), broken(), replies(events(4))))
	request := toTheEnd()
	numbers, err := watched(d.connect(), request)

	check.Fatal(t, err)
	same(t, numbers, 1, 2, 3, 4)
	same(t, requests(d), 0, 30, 30)
	check.Equal(t, d.asked("WatchRun")[1].request.(*crewdv1.WatchRunRequest).StoreId, "store")
	check.Equal(t, request.AfterSequence, 0)
}

func TestAWatchOutlivesItsDaemon(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", inTurn(hangs(events(1)), replies(events(2))))
	var numbers []int64
	for event, err := range d.connect().WatchRun(t.Context(), toTheEnd()) {
		check.Fatal(t, err)
		if numbers = append(numbers, event.RunSequence); len(numbers) == 1 {
			d.stop()
			d.start("other.sock", "changed")
		}
	}

	same(t, numbers, 1, 2)
	check.Equal(t, d.asked("WatchRun")[1].metadata["authorization"][0], "Bearer changed")
}

func TestAHeartbeatMovesTheCursor(t *testing.T) {
	d := newDaemon(t)
	beat := func(sequence int64) *crewdv1.WatchRunResponse {
		return &crewdv1.WatchRunResponse{Heartbeat: &crewdv1.Heartbeat{Sequence: sequence}}
	}
	d.on("WatchRun", inTurn(broken(events(1), beat(70), beat(50)), replies(events(9))))
	numbers, err := watched(d.connect(), toTheEnd("run_created", "run_finished"))

	check.Fatal(t, err)
	same(t, numbers, 1, 9)
	same(t, requests(d), 0, 70)
}

func TestDrainingIsNotTheEnd(t *testing.T) {
	d := newDaemon(t)
	draining := &crewdv1.WatchRunResponse{Draining: &crewdv1.Draining{}}
	soon := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)}
	d.on("WatchRun", inTurn(replies(events(1), draining), func(call asked) error {
		call.send(draining)
		return fails(codes.Unavailable, "", &errdetails.ErrorInfo{Domain: "crewd", Reason: "DRAINING"}, soon)(call)
	}, replies(events(2))))
	numbers, err := watched(d.connect(), toTheEnd())

	check.Fatal(t, err)
	same(t, numbers, 1, 2)
}

func TestAWatchThatIsNotToStopOutlivesAnEnd(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", inTurn(replies(events(1)), replies(events(2))))
	var last int64
	for event, err := range d.connect().WatchRun(t.Context(), &crewdv1.WatchRunRequest{}) {
		check.Fatal(t, err)
		if last = event.RunSequence; last == 2 {
			break
		}
	}
	check.Equal(t, last, 2)
}

func TestSilenceBreaksALink(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", inTurn(hangs(events(1)), replies(events(2))))
	client := d.connect()
	client.silence = 50 * time.Millisecond
	numbers, err := watched(client, toTheEnd())

	check.Fatal(t, err)
	same(t, numbers, 1, 2)
}

func TestAHoleOrARepetitionIsAnError(t *testing.T) {
	for name, told := range map[string][]int64{"hole": {1, 3}, "repetition": {1, 1}, "first": {2}} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			d.on("WatchRun", hangs(events(told...)))
			_, err := watched(d.connect(), toTheEnd())

			check.Equal(t, status.Code(err), codes.DataLoss)
			check.Equal(t, Reason(err), "SEQUENCE_BROKEN")
		})
	}
}

func TestAFilteredWatchAndOneFromTheMiddleMayBeginAnywhere(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", replies(events(5, 7)))
	client := d.connect()
	numbers, err := watched(client, toTheEnd("run_started"))
	check.Fatal(t, err)
	same(t, numbers, 5, 7)

	d.on("WatchRun", replies(events(5, 6)))
	numbers, err = watched(client, &crewdv1.WatchRunRequest{AfterSequence: 40, StopWhenFinished: true})
	check.Fatal(t, err)
	same(t, numbers, 5, 6)
}

func TestARefusalEndsAWatch(t *testing.T) {
	d := newDaemon(t)
	expired := &errdetails.ErrorInfo{Domain: "crewd", Reason: "CURSOR_EXPIRED"}
	d.on("WatchRun", inTurn(broken(events(1)), fails(codes.OutOfRange, "", expired)))
	numbers, err := watched(d.connect(), toTheEnd())

	same(t, numbers, 1)
	check.Equal(t, Reason(err), "CURSOR_EXPIRED")
}

func TestLeavingTheLoopEndsTheCall(t *testing.T) {
	d := newDaemon(t)
	left := make(chan error)
	d.on("WatchRun", func(call asked) error {
		err := hangs(events(1))(call)
		left <- err
		return err
	})
	client := d.connect()
	for range client.WatchRun(t.Context(), toTheEnd()) {
		break
	}

	check.Equal(t, <-left, context.Canceled)
	_, err := client.Daemon.GetServerInfo(t.Context(), &crewdv1.GetServerInfoRequest{})
	check.Fatal(t, err)
}

func TestAWatchEndsWithItsContext(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", hangs(events(1)))
	for name, away := range map[string]bool{"served": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			client := d.connect()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var failed error
			for _, err := range client.WatchRun(ctx, toTheEnd()) {
				if failed = err; err == nil && away {
					d.stop()
				}
				cancel()
			}
			check.Equal(t, status.Code(failed), codes.Canceled)
		})
		if away {
			d.start("crewd.sock", "secret")
		}
	}
}

func TestAWatchEndsWithItsClient(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchRun", hangs(events(1)))
	client := d.connect()
	var failed error
	for _, err := range client.WatchRun(t.Context(), toTheEnd()) {
		if failed = err; err == nil {
			check.Fatal(t, client.Close())
		}
	}
	check.Equal(t, status.Code(failed), codes.Canceled)
}

func TestRunsComeWholeThenChangeByChangeAndAnewAfterABreak(t *testing.T) {
	d := newDaemon(t)
	run := func(id, title string) *crewdv1.Run { return &crewdv1.Run{Id: id, Title: title} }
	all := []*crewdv1.Run{run("a", "new"), run("c", "")}
	d.on("WatchRuns", inTurn(func(call asked) error {
		call.send(&crewdv1.WatchRunsResponse{Runs: []*crewdv1.Run{run("a", "old"), run("b", ""), run("x", "")}})
		call.send(&crewdv1.WatchRunsResponse{Runs: all, RemovedRunIds: []string{"x"}})
		call.send(&crewdv1.WatchRunsResponse{Synced: true})
		call.send(&crewdv1.WatchRunsResponse{Heartbeat: &crewdv1.Heartbeat{}})
		call.send(&crewdv1.WatchRunsResponse{Runs: []*crewdv1.Run{run("d", "")}, RemovedRunIds: []string{"c"}})
		return status.Error(codes.Unavailable, "")
	}, hangs(&crewdv1.WatchRunsResponse{Runs: all[:1], Synced: true})))
	var told []string
	for change, err := range d.connect().WatchRuns(t.Context(), nil) {
		check.Fatal(t, err)
		var said strings.Builder
		for _, item := range change.Items {
			said.WriteString(item.Id + item.Title + " ")
		}
		told = append(told, said.String()+"-"+strings.Join(change.RemovedIDs, " "))
		check.Equal(t, change.Complete, len(told) != 2)
		if len(told) == 3 {
			break
		}
	}
	same(t, told, "b anew c -", "d -c", "anew -b d")
}

func TestAsksAreWatchedAsRunsAre(t *testing.T) {
	d := newDaemon(t)
	d.on("WatchAsks", inTurn(
		replies(&crewdv1.WatchAsksResponse{Asks: []*crewdv1.Ask{{Id: "ask_x"}}, Synced: true}),
		fails(codes.PermissionDenied, "no")))
	var failed error
	for change, err := range d.connect().WatchAsks(t.Context(), &crewdv1.AskFilter{RunId: "run_x"}) {
		if failed = err; err == nil {
			check.Equal(t, change.Items[0].Id, "ask_x")
		}
	}
	check.Equal(t, d.asked("WatchAsks")[0].request.(*crewdv1.WatchAsksRequest).Filter.RunId, "run_x")
	check.Equal(t, failed.Error(), "no")
}
