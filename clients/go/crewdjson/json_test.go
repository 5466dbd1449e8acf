package crewdjson

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	crewdv1 "crewd.dev/go/crewd/v1"
	"crewd.dev/go/internal/check"
)

func shown(t *testing.T, m proto.Message) string {
	t.Helper()
	data, err := Marshal(m)
	check.Fatal(t, err)
	return string(data)
}

func TestDefaultsAreThereAndWhatIsUnsetIsNot(t *testing.T) {
	text := shown(t, &crewdv1.Run{Id: "run_x", Status: crewdv1.RunStatus_RUN_STATUS_COMPLETED})

	check.Contains(t, text, `"status":"completed"`, `"title":""`, `"labels":{}`, `"last_sequence":0`, `"failure_mode":"unspecified"`)
	if strings.Contains(text, "workspace") || strings.Contains(text, "end_time") {
		t.Fatal(text)
	}
}

func TestValuesHaveTheirForms(t *testing.T) {
	run := &crewdv1.Run{LastSequence: 1 << 60, CreateTime: timestamppb.New(time.UnixMilli(1005)), Title: "<é ✓>"}
	check.Contains(t, shown(t, run), `"last_sequence":1152921504606846976`, `"create_time":"1970-01-01T00:00:01.005Z"`, `"<é ✓>"`)
	check.Contains(t, shown(t, &crewdv1.ReadOutputResponse{Data: []byte{0, 255}}), `"data":"AP8="`)
	for text, span := range map[string]time.Duration{`"1.5s"`: 1500 * time.Millisecond, `"20s"`: 20 * time.Second, `"0s"`: 0} {
		check.Contains(t, shown(t, &crewdv1.TaskSpec{Timeout: durationpb.New(span)}), `"timeout":`+text)
	}
	schema, err := structpb.NewStruct(map[string]any{"type": "object", "required": []any{"a", "b"}})
	check.Fatal(t, err)
	check.Contains(t, shown(t, &crewdv1.OutputSpec{Schema: schema}), `{"required":["a","b"],"type":"object"}`)
}

func TestAnEventHasItsPayloadUnderData(t *testing.T) {
	event := &crewdv1.Event{Sequence: 4, Kind: "message_posted",
		Payload: &crewdv1.Event_MessagePosted{MessagePosted: &crewdv1.MessagePosted{Text: "hi"}}}
	response := &crewdv1.WatchRunResponse{Events: []*crewdv1.Event{event}}
	text := shown(t, response)

	check.Contains(t, text, `"data":{"role":"","text":"hi","truncated":false}`)
	again := &crewdv1.WatchRunResponse{}
	check.Fatal(t, Unmarshal([]byte(text), again))
	check.Equal(t, proto.Equal(response, again), true)
}

func TestAnEventOfAKindNotKnownHasEmptyData(t *testing.T) {
	text := shown(t, &crewdv1.Event{Kind: "later"})
	check.Contains(t, text, `"data":{}`)
	check.Fatal(t, Unmarshal([]byte(text), &crewdv1.Event{}))
}

func TestAValueNotKnownStaysANumber(t *testing.T) {
	text := shown(t, &crewdv1.Run{Status: 99})
	check.Contains(t, text, `"status":99`)
	run := &crewdv1.Run{}
	check.Fatal(t, Unmarshal([]byte(text), run))
	check.Equal(t, run.Status, 99)
}

func TestEnumsMayBeWrittenInManyWays(t *testing.T) {
	for _, mode := range []string{"fail_fast", "FAIL_FAST", "Fail-Fast", "FAILURE_MODE_FAIL_FAST"} {
		spec := &crewdv1.RunSpec{}
		check.Fatal(t, Unmarshal([]byte(`{"failure_mode":"`+mode+`"}`), spec))
		check.Equal(t, spec.FailureMode, crewdv1.FailureMode_FAILURE_MODE_FAIL_FAST)
	}
}

func TestADurationIsWrittenAsPeopleWriteIt(t *testing.T) {
	for text, span := range map[string]time.Duration{`"1s"`: time.Second, `"1.5s"`: 1500 * time.Millisecond, `"2m"`: 2 * time.Minute,
		`"1h30m"`: 90 * time.Minute, `"90"`: 90 * time.Second, `90`: 90 * time.Second, `"250ms"`: 250 * time.Millisecond} {
		task := &crewdv1.TaskSpec{}
		check.Fatal(t, Unmarshal([]byte(`{"timeout":`+text+`}`), task))
		check.Equal(t, task.Timeout.AsDuration(), span)
	}
}

func TestWhatDoesNotFitIsToldWithItsPlace(t *testing.T) {
	for text, problem := range map[string]string{
		`{"gaol": "g", "keep": "yes"}`:             `gaol: unknown key "gaol"; keep: bool is expected, not yes`,
		`{"tasks": [{"retry": {"max": 3}}]}`:       `tasks[0].retry.max: unknown key "max"`,
		`{"tasks": [{"timeout": "soon"}]}`:         `tasks[0].timeout: "soon" is no duration`,
		`{"tasks": [{"timeout": "-1s"}]}`:          `tasks[0].timeout: "-1s" is no duration`,
		`{"tasks": {}}`:                            `tasks: a list or a mapping is expected`,
		`{"workspace": []}`:                        `workspace: a mapping is expected`,
		`{"failureMode": "continue"}`:              `failureMode: unknown key`,
		`{"failure_mode": "continu"}`:              `failure_mode: "continu" is none of`,
		`{"role_overrides": {"a": {"b": 1}}}`:      `role_overrides.a.b: unknown key "b"`,
		`{"limits": {"max_tasks": "2"}}`:           `limits.max_tasks: int32 is expected, not 2`,
		`{"limits": {"max_tasks": 1099511627776}}`: `limits.max_tasks: int32 is expected, not 1099511627776`,
		`{"limits": {"max_tokens": 1.5}}`:          `limits.max_tokens: int64 is expected, not 1.5`,
		`{"goal": 1}`:                              `goal: string is expected, not 1`,
		`[]`:                                       `a mapping is expected`,
		`{"goal": "a"} {}`:                         `more after its end`,
		`{"goal": `:                                `unexpected EOF`,
	} {
		err := Unmarshal([]byte(text), &crewdv1.RunSpec{})
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNullIsAsGoodAsNothing(t *testing.T) {
	spec := &crewdv1.RunSpec{}
	check.Fatal(t, Unmarshal([]byte(`{"goal": null, "tasks": null, "limits": null}`), spec))
	check.Equal(t, proto.Equal(spec, &crewdv1.RunSpec{}), true)
}
