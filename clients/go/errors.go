package crewd

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	crewdv1 "crewd.dev/go/crewd/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Error is why a call failed. Branch on Reason, or on Code if you do not know the reason.
type Error struct {
	Code       codes.Code
	Reason     string // a crewdv1.ErrorReason without prefix, such as RUN_NOT_FOUND
	Message    string // for people
	Metadata   map[string]string
	Violations []*Violation  // what is wrong with the request
	Ask        *crewdv1.Ask  // with ASK_SETTLED: how it was settled
	RetryAfter time.Duration // the daemon's wish; 0: none
}

// Violation is one thing that is wrong with a request: the Field's path, and why in its Description.
type Violation = errdetails.BadRequest_FieldViolation

// Error gives the message.
func (e *Error) Error() string { return cmp.Or(e.Message, e.Reason, e.Code.String()) }

// GRPCStatus makes status.Code and status.FromError work.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Error()) }

// Reason gives the reason of an *Error; of any other error, nothing.
func Reason(err error) string { return of(err).Reason }

func of(err error) *Error {
	ours, _ := errors.AsType[*Error](err)
	return cmp.Or(ours, &Error{})
}

// translate makes an *Error of what gRPC tells, and notes whether the daemon answered.
func (c *Client) translate(err error) error {
	if err == nil || err == io.EOF {
		c.answered.Store(true)
		return err
	}
	told, ok := status.FromError(err)
	if !ok {
		told = status.FromContextError(err)
	}
	ours := &Error{Code: told.Code(), Message: told.Message()}
	for _, each := range told.Details() {
		switch detail := each.(type) {
		case *errdetails.ErrorInfo:
			ours.Metadata = detail.Metadata
			if detail.Domain == "crewd" {
				ours.Reason = detail.Reason
			}
		case *errdetails.BadRequest:
			ours.Violations = detail.FieldViolations
		case *errdetails.RetryInfo:
			ours.RetryAfter = detail.RetryDelay.AsDuration()
		case *crewdv1.Ask:
			ours.Ask = detail
		}
	}
	if ours.Reason == "" && (ours.Code == codes.Unavailable || ours.Code == codes.DeadlineExceeded && !c.answered.Load()) {
		ours.Code, ours.Message = codes.Unavailable, "no daemon answers at "+c.location.Load().Socket
	} else if ours.Code == codes.ResourceExhausted && strings.Contains(ours.Message, "message larger than max") &&
		!strings.HasPrefix(ours.Message, "grpc:") { // that would be an answer
		ours.Reason, ours.Message = "REQUEST_TOO_LARGE", "the request is too large: "+ours.Message
	}
	return ours
}

// mayPass tells whether to try again: a daemon that never answered is not waited for.
func (c *Client) mayPass(err error, passing ...codes.Code) bool {
	return slices.Contains(passing, status.Code(err)) && (c.answered.Load() || Reason(err) != "")
}
