package crewd

import (
	"context"
	"path/filepath"
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

func getRun(ctx context.Context, client *Client) error {
	_, err := client.Runs.GetRun(ctx, &crewdv1.GetRunRequest{RunId: "run_x"})
	return err
}

var aRun = replies(&crewdv1.GetRunResponse{Run: &crewdv1.Run{Id: "run_x"}})

func TestEveryCallCarriesTokenNameAndAuthority(t *testing.T) {
	d := newDaemon(t)
	d.on("GetRun", aRun)
	check.Fatal(t, getRun(t.Context(), d.connect()))

	said := d.asked("GetRun")[0].metadata
	check.Equal(t, said["authorization"][0], "Bearer secret")
	check.Equal(t, said[":authority"][0], "localhost")
	if !strings.HasPrefix(said["x-crewd-client"][0], "crewd-client-go/") {
		t.Fatal(said)
	}
}

func TestAUnaryCallHasADeadlineOfTenSecondsUnlessItHasItsOwn(t *testing.T) {
	d := newDaemon(t)
	d.on("GetRun", aRun)
	client := d.connect()
	longer, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check.Fatal(t, getRun(t.Context(), client))
	check.Fatal(t, getRun(longer, client))

	for i, limit := range []time.Duration{10 * time.Second, time.Minute} {
		end, limited := d.asked("GetRun")[i].context.Deadline()
		if left := time.Until(end); !limited || left > limit || left < limit/2 {
			t.Fatal(limited, left)
		}
	}
}

func TestADaemonOfAnotherStateDirectoryIsNotTheOneMeant(t *testing.T) {
	d := newDaemon(t)
	socket := filepath.Join(d.stateDir, "crewd.sock")
	_, err := Connect(t.Context(), Options{StateDir: t.TempDir(), Socket: socket, Env: d.env})
	check.Equal(t, status.Code(err), codes.Unavailable)

	nowhere := func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] }
	client, err := Connect(t.Context(), Options{Socket: socket, Env: nowhere})
	check.Fatal(t, err)
	check.Fatal(t, client.Close())
}

func TestWithoutADaemonConnectingFailsAtOnce(t *testing.T) {
	d := newDaemon(t)
	d.stop()
	begin := time.Now()
	_, err := Connect(t.Context(), Options{Env: d.env})

	check.Equal(t, err.Error(), "no daemon answers at "+filepath.Join(d.stateDir, "crewd.sock"))
	check.Equal(t, status.Code(err), codes.Unavailable)
	check.Equal(t, Reason(err), "")
	if time.Since(begin) > 5*time.Second {
		t.Fatal("it was waited for")
	}
}

func TestADaemonThatHangsAtFirstContactIsNotThere(t *testing.T) {
	d := newDaemon(t)
	d.on("GetServerInfo", hangs())
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Connect(short, Options{Env: d.env})

	check.Equal(t, err.Error(), "no daemon answers at "+filepath.Join(d.stateDir, "crewd.sock"))
	check.Equal(t, status.Code(err), codes.Unavailable)
}

func TestWithATaskTokenNothingIsChecked(t *testing.T) {
	d := newDaemon(t)
	d.on("ReportProgress", replies(&crewdv1.ReportProgressResponse{}))
	client, err := Connect(t.Context(), Options{Env: func(name string) string {
		return map[string]string{"CREWD_STATE_DIR": d.stateDir, "CREWD_TASK_TOKEN": "task"}[name]
	}})
	check.Fatal(t, err)
	defer func() { check.Fatal(t, client.Close()) }()
	_, err = client.Worker.ReportProgress(t.Context(), &crewdv1.ReportProgressRequest{})

	check.Fatal(t, err)
	check.Equal(t, len(d.asked("GetServerInfo")), 0)
	check.Equal(t, d.asked("ReportProgress")[0].metadata["authorization"][0], "Bearer task")
}

func TestAWriteGetsARequestIDAndKeepsItWhenTriedAgain(t *testing.T) {
	d := newDaemon(t)
	d.on("CancelRun", inTurn(fails(codes.Unavailable, ""), replies(&crewdv1.CancelRunResponse{})))
	client, request := d.connect(), &crewdv1.CancelRunRequest{RunId: "run_x"}
	_, err := client.Runs.CancelRun(t.Context(), request)
	check.Fatal(t, err)
	_, err = client.Runs.CancelRun(t.Context(), &crewdv1.CancelRunRequest{RequestId: "mine"})
	check.Fatal(t, err)

	var ids []string
	for _, call := range d.asked("CancelRun") {
		ids = append(ids, call.request.(*crewdv1.CancelRunRequest).RequestId)
	}
	check.Equal(t, len(ids), 3)
	check.Equal(t, ids[0], ids[1])
	check.Equal(t, len(ids[0]), 26)
	check.Equal(t, ids[2], "mine")
	check.Equal(t, request.RequestId, "")
}

func TestACallIsTriedAgainWhenTheDaemonSaysSo(t *testing.T) {
	d := newDaemon(t)
	later := &errdetails.RetryInfo{RetryDelay: durationpb.New(200 * time.Millisecond)}
	reason := &errdetails.ErrorInfo{Domain: "crewd", Reason: "RECOVERING"}
	d.on("GetRun", inTurn(fails(codes.Unavailable, "not yet", reason, later), aRun))
	client, begin := d.connect(), time.Now()

	check.Fatal(t, getRun(t.Context(), client))
	if time.Since(begin) < 200*time.Millisecond {
		t.Fatal("it was tried too early")
	}
}

func TestOnlyUnavailableIsTriedAgain(t *testing.T) {
	d := newDaemon(t)
	d.on("GetRun", fails(codes.Internal, "a bug"))

	check.Equal(t, getRun(t.Context(), d.connect()).Error(), "a bug")
	check.Equal(t, len(d.asked("GetRun")), 1)
}

func TestACallIsTriedNoLongerThanItsDeadline(t *testing.T) {
	d := newDaemon(t)
	client := d.connect()
	d.stop()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()

	check.Equal(t, status.Code(getRun(short, client)), codes.Unavailable)
	check.Equal(t, short.Err() != nil, true)
}

func TestACallOutlivesARestartAtAnotherSocketWithAnotherToken(t *testing.T) {
	d := newDaemon(t)
	client := d.connect()
	d.on("GetRun", aRun)
	d.stop()
	done := make(chan error)
	go func() { done <- getRun(t.Context(), client) }()
	d.start("other.sock", "changed")

	check.Fatal(t, <-done)
	check.Equal(t, d.asked("GetRun")[0].metadata["authorization"][0], "Bearer changed")
}

func TestACallAfterCloseFailsAtOnce(t *testing.T) {
	client := newDaemon(t).connect()
	check.Fatal(t, client.Close())

	check.Equal(t, status.Code(getRun(t.Context(), client)), codes.Canceled)
}

func TestPagesAreReadOneAfterTheOther(t *testing.T) {
	d := newDaemon(t)
	d.on("ListRuns", inTurn(
		replies(&crewdv1.ListRunsResponse{Runs: []*crewdv1.Run{{Id: "a"}, {Id: "b"}}, NextPageToken: "next"}),
		replies(&crewdv1.ListRunsResponse{Runs: []*crewdv1.Run{{Id: "c"}}}),
		fails(codes.InvalidArgument, "no such page")))
	client, request := d.connect(), &crewdv1.ListRunsRequest{PageSize: 2}
	list := func() (ids string, err error) {
		for run, failed := range Pages(t.Context(), client.Runs.ListRuns, request, (*crewdv1.ListRunsResponse).GetRuns) {
			ids, err = ids+run.GetId(), failed
		}
		return ids, err
	}
	ids, err := list()

	check.Fatal(t, err)
	check.Equal(t, ids, "abc")
	check.Equal(t, d.asked("ListRuns")[1].request.(*crewdv1.ListRunsRequest).PageToken, "next")
	check.Equal(t, request.PageToken, "")
	_, err = list()
	check.Equal(t, err.Error(), "no such page")
}
