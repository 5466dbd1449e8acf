package crewd

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	crewdv1 "crewd.dev/go/crewd/v1"
	"crewd.dev/go/internal/check"
)

func TestAnErrorHoldsAllTheDaemonTold(t *testing.T) {
	d := newDaemon(t)
	d.on("AnswerAsk", fails(codes.Aborted, "settled before",
		&errdetails.ErrorInfo{Domain: "crewd", Reason: "ASK_SETTLED", Metadata: map[string]string{"ask_id": "ask_x"}},
		&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "text", Description: "no"}}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)},
		&crewdv1.Ask{Id: "ask_x"}))
	_, err := d.connect().Asks.AnswerAsk(t.Context(), &crewdv1.AnswerAskRequest{})
	err = fmt.Errorf("wrapped: %w", err)

	var ours *Error
	if !errors.As(err, &ours) {
		t.Fatal(err)
	}
	check.Equal(t, ours.Code, codes.Aborted)
	check.Equal(t, status.Code(err), codes.Aborted)
	check.Equal(t, Reason(err), "ASK_SETTLED")
	check.Equal(t, ours.Message, "settled before")
	check.Equal(t, ours.Metadata["ask_id"], "ask_x")
	check.Equal(t, ours.Violations[0].Field, "text")
	check.Equal(t, ours.Violations[0].Description, "no")
	check.Equal(t, ours.RetryAfter, time.Second)
	check.Equal(t, ours.Ask.Id, "ask_x")
}

func TestReasonsOfOthersAreNotOurs(t *testing.T) {
	d := newDaemon(t)
	d.on("GetRun", fails(codes.NotFound, "", &errdetails.ErrorInfo{Domain: "else", Reason: "RUN_NOT_FOUND"}))
	err := getRun(t.Context(), d.connect())

	check.Equal(t, Reason(err), "")
	check.Equal(t, err.Error(), "NotFound")
	check.Equal(t, Reason(errors.New("else")), "")
}

func TestARequestThatIsTooLargeHasAReason(t *testing.T) {
	d := newDaemon(t)
	d.on("GetRun", inTurn(
		fails(codes.ResourceExhausted, "SERVER: Received message larger than max (2 vs. 1)"),
		fails(codes.ResourceExhausted, "grpc: received message larger than max (2 vs. 1)")))
	client := d.connect()

	check.Equal(t, Reason(getRun(t.Context(), client)), "REQUEST_TOO_LARGE")
	check.Equal(t, Reason(getRun(t.Context(), client)), "")
}

func TestAStreamFailsWithOurErrors(t *testing.T) {
	d := newDaemon(t)
	d.on("ReadOutput", fails(codes.NotFound, "none", &errdetails.ErrorInfo{Domain: "crewd", Reason: "TASK_NOT_FOUND"}))
	stream, err := d.connect().Runs.ReadOutput(t.Context(), &crewdv1.ReadOutputRequest{})
	check.Fatal(t, err)
	_, err = stream.Recv()

	check.Equal(t, Reason(err), "TASK_NOT_FOUND")
}
