package crewd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	crewdv1 "crewd.dev/go/crewd/v1"
	"crewd.dev/go/crewdjson"
	"crewd.dev/go/internal/check"
)

// object is a JSON object: a step, a stage's answer, an error as scenarios describe it.
type object = map[string]any

const root = "../.."

// TestConformance carries out what all clients share: see clients/conformance/README.md.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob(root + "/clients/conformance/scenarios/*.json")
	check.Fatal(t, err)
	stage := startStage(t)
	for _, file := range files {
		var written struct {
			Area      string
			Scenarios []struct {
				Name  string
				Steps []json.RawMessage
			}
		}
		text, err := os.ReadFile(file)
		check.Fatal(t, err)
		check.Fatal(t, json.Unmarshal(text, &written))
		for _, scenario := range written.Scenarios {
			t.Run(written.Area+"/"+scenario.Name, func(t *testing.T) { play(t, stage, scenario.Steps) })
		}
	}
}

// stage is the program that has daemons, directories and files.
type stage struct {
	steps   io.WriteCloser
	replies *bufio.Reader
}

func startStage(t *testing.T) *stage {
	t.Helper()
	words := strings.Fields(cmp.Or(os.Getenv("CREWD_STAGE"), ".venv/bin/python -m tests.conformance.stage"))
	if _, err := os.Stat(filepath.Join(root, words[0])); os.Getenv("CREWD_STAGE") == "" && err != nil {
		t.Skip("no stage: run make in the repository's root, or name one in CREWD_STAGE")
	}
	command := exec.Command(words[0], words[1:]...)
	command.Dir, command.Stderr = root, os.Stderr
	steps, err := command.StdinPipe()
	check.Fatal(t, err)
	replies, err := command.StdoutPipe()
	check.Fatal(t, err)
	check.Fatal(t, command.Start())
	t.Cleanup(func() {
		_ = steps.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the stage: %v", err)
		}
	})
	return &stage{steps, bufio.NewReader(replies)}
}

// do sends a step; what the stage answers is an error if it says so.
func (s *stage) do(step any) (vars object, env map[string]string, err error) {
	line, err := json.Marshal(step)
	if err == nil {
		_, err = s.steps.Write(append(line, '\n'))
	}
	if err == nil {
		line, err = s.replies.ReadBytes('\n')
	}
	var reply struct {
		Vars  object
		Env   map[string]string
		Error string
	}
	if err == nil {
		err = parse(line, &reply)
	}
	if err == nil && reply.Error != "" {
		err = fmt.Errorf("the stage: %s", reply.Error)
	}
	return reply.Vars, reply.Env, err
}

// player is what one scenario has.
type player struct {
	stage   *stage
	context context.Context
	vars    object
	env     map[string]string
	clients map[string]*Client
	watches map[string]*watch
}

func play(t *testing.T, stage *stage, steps []json.RawMessage) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := &player{stage, ctx, object{}, nil, map[string]*Client{}, map[string]*watch{}}
	defer func() {
		for name := range p.watches {
			p.watches[name].close()
		}
		for name := range p.clients {
			_ = p.clients[name].Close() // closed twice if the scenario did so
		}
		if err := p.act(object{"stage": "end"}); err != nil {
			t.Errorf("end: %v", err)
		}
	}()
	check.Fatal(t, p.act(object{"stage": "begin"}))
	for i, text := range steps {
		var step object
		check.Fatal(t, parse(text, &step))
		if err := p.act(step); err != nil {
			t.Fatalf("step %d, %.100s: %v", i+1, strings.Join(strings.Fields(string(text)), " "), err)
		}
	}
}

// act does one step, and compares what comes of it with what is expected.
func (p *player) act(written object) error {
	save, _ := written["save"].(object)
	step := p.filled(written).(object)
	if step["stage"] != nil {
		vars, env, err := p.stage.do(step)
		maps.Copy(p.vars, vars)
		if env != nil {
			p.env = env
		}
		return err
	}
	got, failed := p.do(step)
	wanted, toFail := step["error"]
	switch {
	case failed != nil && toFail:
		return difference(wanted, told(failed), "")
	case failed != nil:
		return failed
	case toFail:
		return fmt.Errorf("it should have failed, but gave %s", short(got))
	}
	if expected, given := step["expect"]; given && step["await"] == nil {
		if err := difference(expected, got, ""); err != nil {
			return err
		}
	}
	for name, path := range save {
		p.vars[name] = at(got, path.(string))
	}
	return nil
}

func (p *player) do(step object) (any, error) {
	for verb, value := range step {
		name, _ := value.(string)
		switch verb {
		case "value":
			return value, nil
		case "json":
			return printedAgain(name, step["input"])
		case "locate":
			found, err := Locate(p.options(value, step))
			token := any(found.Token)
			if found.Token == "" {
				token = nil
			}
			return object{"state_dir": found.StateDir, "socket": found.Socket, "token": token, "task_token": found.TaskToken}, err
		case "connect":
			client, err := Connect(p.context, p.options(value, step))
			if err == nil {
				p.clients[or(step["as"], "client")] = client
			}
			return nil, err
		case "await":
			return p.watches[name].until(p.context, step["expect"])
		case "ended":
			return p.watches[name].end(p.context)
		case "close":
			if watch := p.watches[name]; watch != nil {
				watch.close()
				return nil, nil
			}
			return nil, p.clients[name].Close()
		case "watch_run", "watch_runs", "watch_asks":
			var err error
			p.watches[name], err = begin(p.context, p.clients[or(step["client"], "client")], verb, step["request"])
			return nil, err
		case "call", "stream", "pages":
			return p.call(verb, name, step)
		}
	}
	return nil, fmt.Errorf("there is no such step: %v", step)
}

func (p *player) options(given any, step object) Options {
	env := maps.Clone(p.env)
	changes, _ := step["env"].(object)
	for name, value := range changes {
		env[name] = value.(string)
	}
	unset, _ := step["unset"].([]any)
	for _, name := range unset {
		delete(env, name.(string))
	}
	named := given.(object)
	return Options{StateDir: or(named["state_dir"], ""), Socket: or(named["socket"], ""),
		Env: func(name string) string { return env[name] }}
}

// call makes a call with the generated client, as its users do.
func (p *player) call(verb, path string, step object) (any, error) {
	service, name, _ := strings.Cut(path, "/")
	client := p.clients[or(step["client"], "client")]
	stubs := map[string]any{"RunService": client.Runs, "AskService": client.Asks, "WorkerService": client.Worker,
		"CatalogService": client.Catalog, "DaemonService": client.Daemon}
	method := reflect.ValueOf(stubs[service]).MethodByName(name)
	request := reflect.New(method.Type().In(1).Elem()).Interface().(proto.Message)
	if err := read(step["request"], request); err != nil {
		return nil, err
	}
	if step["unknown_field"] == true {
		request.ProtoReflect().SetUnknown(protoreflect.RawFields{0xb8, 0x3e, 1})
	}
	if verb == "pages" {
		return allPages(p.context, client, request)
	}
	ctx := p.context
	if seconds, limited := step["timeout"].(json.Number); limited {
		limit, err := time.ParseDuration(seconds.String() + "s")
		if err != nil {
			return nil, err
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	out := method.Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
	if err, _ := out[1].Interface().(error); err != nil || verb == "call" {
		return printed(out[0].Interface(), err)
	}
	responses := []any{}
	for {
		next := out[0].MethodByName("Recv").Call(nil)
		err, _ := next[1].Interface().(error)
		if err == io.EOF {
			return responses, nil
		}
		response, err := printed(next[0].Interface(), err)
		if err != nil {
			return nil, err
		}
		responses = append(responses, response)
	}
}

func allPages(ctx context.Context, c *Client, request proto.Message) (any, error) {
	switch q := request.(type) {
	case *crewdv1.ListRunsRequest:
		return listed(Pages(ctx, c.Runs.ListRuns, q, (*crewdv1.ListRunsResponse).GetRuns))
	case *crewdv1.ListTasksRequest:
		return listed(Pages(ctx, c.Runs.ListTasks, q, (*crewdv1.ListTasksResponse).GetTasks))
	case *crewdv1.ListEventsRequest:
		return listed(Pages(ctx, c.Runs.ListEvents, q, (*crewdv1.ListEventsResponse).GetEvents))
	case *crewdv1.ListArtifactsRequest:
		return listed(Pages(ctx, c.Runs.ListArtifacts, q, (*crewdv1.ListArtifactsResponse).GetArtifacts))
	case *crewdv1.ListAsksRequest:
		return listed(Pages(ctx, c.Asks.ListAsks, q, (*crewdv1.ListAsksResponse).GetAsks))
	case *crewdv1.ListAgentsRequest:
		return listed(Pages(ctx, c.Catalog.ListAgents, q, (*crewdv1.ListAgentsResponse).GetAgents))
	case *crewdv1.ListTeamsRequest:
		return listed(Pages(ctx, c.Catalog.ListTeams, q, (*crewdv1.ListTeamsResponse).GetTeams))
	case *crewdv1.ListWorkflowsRequest:
		return listed(Pages(ctx, c.Catalog.ListWorkflows, q, (*crewdv1.ListWorkflowsResponse).GetWorkflows))
	case *crewdv1.ListSkillsRequest:
		return listed(Pages(ctx, c.Catalog.ListSkills, q, (*crewdv1.ListSkillsResponse).GetSkills))
	}
	return nil, fmt.Errorf("there are no pages for %T", request)
}

func listed[T proto.Message](items iter.Seq2[T, error]) (any, error) {
	list := []any{}
	for item, err := range items {
		shown, err := printed(item, err)
		if err != nil {
			return nil, err
		}
		list = append(list, shown)
	}
	return list, nil
}

// printed gives what a call gave in crewd's JSON form.
func printed(got any, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	var tree any
	data, err := crewdjson.Marshal(got.(proto.Message))
	if err == nil {
		err = parse(data, &tree)
	}
	return tree, err
}

func printedAgain(name string, input any) (any, error) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("crewd.v1." + name))
	if err != nil {
		return nil, err
	}
	message := kind.New().Interface()
	return printed(message, read(input, message))
}

// read fills a message from a part of a step; nothing leaves it empty.
func read(given any, message proto.Message) error {
	if given == nil {
		return nil
	}
	data, err := json.Marshal(given)
	if err == nil {
		err = crewdjson.Unmarshal(data, message)
	}
	if err != nil {
		return &Error{Code: codes.InvalidArgument, Message: err.Error()}
	}
	return nil
}

// parse reads JSON without loss of digits.
func parse(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// told gives an error as scenarios describe it.
func told(err error) any {
	ours, ok := errors.AsType[*Error](err)
	if !ok {
		return object{"message": err.Error()}
	}
	metadata, violations := object{}, []any{}
	for name, value := range ours.Metadata {
		metadata[name] = value
	}
	for _, each := range ours.Violations {
		violations = append(violations, object{"field": each.Field, "description": each.Description})
	}
	code := strings.ToUpper(regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(ours.Code.String(), "${1}_$2"))
	code = strings.Replace(code, "CANCELED", "CANCELLED", 1) // the name of the contract
	said := object{"code": code, "reason": ours.Reason, "message": ours.Message, "metadata": metadata, "violations": violations}
	if ours.RetryAfter != 0 {
		said["retry_after"] = strconv.FormatFloat(ours.RetryAfter.Seconds(), 'f', -1, 64) + "s"
	}
	if ours.Ask != nil {
		said["ask"], _ = printed(ours.Ask, nil)
	}
	return said
}
