package crewd

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	crewdv1 "crewd.dev/go/crewd/v1"
	"crewd.dev/go/internal/check"
)

// asked is one call that a daemon has received.
type asked struct {
	method   string
	request  proto.Message
	metadata metadata.MD
	context  context.Context
	send     func(proto.Message)
}

// daemon is a real gRPC server on a unix socket whose answers are given by the tests.
type daemon struct {
	t        *testing.T
	stateDir string
	server   *grpc.Server

	mu      sync.Mutex
	calls   []asked
	answers map[string]func(asked) error
}

// newDaemon serves a state directory of its own and answers GetServerInfo.
func newDaemon(t *testing.T) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "crewd-go-") // a socket's path must be short
	check.Fatal(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := &daemon{t: t, stateDir: resolve(dir), answers: map[string]func(asked) error{}}
	d.on("GetServerInfo", func(call asked) error {
		call.send(&crewdv1.GetServerInfoResponse{Server: &crewdv1.ServerInfo{StateDir: d.stateDir}})
		return nil
	})
	d.start("crewd.sock", "secret")
	t.Cleanup(func() { d.stop() })
	return d
}

// on says how a method is answered from now on.
func (d *daemon) on(method string, answer func(asked) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[method] = answer
}

// start serves under a name in the state directory, with this token, and tells so in daemon.json.
func (d *daemon) start(name, token string) {
	d.t.Helper()
	socket := filepath.Join(d.stateDir, name)
	listener, err := net.Listen("unix", socket)
	check.Fatal(d.t, err)
	d.write("token", token+"\n")
	text, err := json.Marshal(map[string]any{"protocol": 1, "instance_id": "i", "store_id": "s", "pid": os.Getpid(),
		"version": "1", "socket": socket, "token_file": filepath.Join(d.stateDir, "token"), "state_dir": d.stateDir})
	check.Fatal(d.t, err)
	d.write("daemon.json", string(text))
	d.server = grpc.NewServer(grpc.UnknownServiceHandler(d.handle))
	go func(server *grpc.Server) { _ = server.Serve(listener) }(d.server) // ends with stop
}

// stop ends the server as a crash does: every call breaks.
func (d *daemon) stop() { d.server.Stop() }

func (d *daemon) write(name, text string) {
	d.t.Helper()
	check.Fatal(d.t, os.WriteFile(filepath.Join(d.stateDir, name), []byte(text), 0o600))
}

func (d *daemon) handle(_ any, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(found.(protoreflect.MethodDescriptor).Input().FullName())
	if err != nil {
		return err
	}
	request := kind.New().Interface()
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	said, _ := metadata.FromIncomingContext(stream.Context())
	call := asked{string(name.Name()), request, said, stream.Context(), func(m proto.Message) {
		_ = stream.SendMsg(m) // who is gone needs no answer
	}}
	d.mu.Lock()
	d.calls = append(d.calls, call)
	answer := d.answers[call.method]
	d.mu.Unlock()
	if answer == nil {
		return status.Error(codes.Unimplemented, call.method)
	}
	return answer(call)
}

// asked gives the calls of a method so far.
func (d *daemon) asked(method string) []asked {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []asked
	for _, call := range d.calls {
		if call.method == method {
			found = append(found, call)
		}
	}
	return found
}

// env is an environment in which nothing but the daemon can be found.
func (d *daemon) env(name string) string {
	return map[string]string{"HOME": d.stateDir, "CREWD_STATE_DIR": d.stateDir}[name]
}

func (d *daemon) connect() *Client {
	d.t.Helper()
	client, err := Connect(d.t.Context(), Options{Env: d.env})
	check.Fatal(d.t, err)
	d.t.Cleanup(func() { _ = client.Close() })
	return client
}

// inTurn uses up the answers one by one; the last one stays.
func inTurn(answers ...func(asked) error) func(asked) error {
	var mu sync.Mutex
	return func(call asked) error {
		mu.Lock()
		answer := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		mu.Unlock()
		return answer(call)
	}
}

// replies sends messages and ends with OK.
func replies(messages ...proto.Message) func(asked) error {
	return func(call asked) error {
		for _, message := range messages {
			call.send(message)
		}
		return nil
	}
}

// fails ends with an error that has these details.
func fails(code codes.Code, message string, details ...protoadapt.MessageV1) func(asked) error {
	return func(asked) error {
		said, err := status.New(code, message).WithDetails(details...)
		if err != nil {
			return err
		}
		return said.Err()
	}
}

// hangs sends messages, then nothing until the caller is gone.
func hangs(messages ...proto.Message) func(asked) error {
	return func(call asked) error {
		_ = replies(messages...)(call)
		<-call.context.Done()
		return call.context.Err()
	}
}
