package crewd

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	crewdv1 "crewd.dev/go/crewd/v1"
)

// difference tells what is not as a scenario expects it.
func difference(expected, got any, path string) error {
	switch expected := expected.(type) {
	case object:
		for key, wanted := range expected {
			if strings.HasPrefix(key, "$") {
				return operator(key, wanted, got, path)
			}
		}
		given, isObject := got.(object)
		for key, wanted := range expected {
			item, there := given[key]
			if reflect.DeepEqual(wanted, object{"$absent": true}) {
				if there {
					return unlike(path+"."+key, "nothing", item)
				}
				continue
			}
			if !there {
				return unlike(path+"."+key, "it there", got)
			}
			if err := difference(wanted, item, path+"."+key); err != nil {
				return err
			}
		}
		if !isObject {
			return unlike(path, "an object", got)
		}
		return nil
	case []any:
		list, isList := got.([]any)
		if !isList || len(list) != len(expected) {
			return unlike(path, fmt.Sprintf("a list of %d", len(expected)), got)
		}
		for i, wanted := range expected {
			if err := difference(wanted, list[i], fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		if number, isNumber := got.(json.Number); isNumber && expected != number {
			one, _ := expected.Float64()
			other, _ := number.Float64()
			if strings.ContainsAny(string(expected+number), ".eE") && one == other {
				return nil
			}
		}
	}
	if expected != got {
		return unlike(path, short(expected), got)
	}
	return nil
}

func operator(name string, wanted, got any, path string) error {
	items, _ := got.([]any)
	number, _ := wanted.(json.Number)
	count, _ := number.Float64()
	switch name {
	case "$all":
		for _, each := range wanted.([]any) {
			if err := difference(each, got, path); err != nil {
				return err
			}
		}
		return nil
	case "$has":
		return has(wanted.([]any), items, path)
	case "$length":
		if len(items) == int(count) {
			return nil
		}
	case "$min":
		given, _ := got.(json.Number)
		if actual, err := given.Float64(); err == nil && actual >= count {
			return nil
		}
	case "$match":
		text, isText := got.(string)
		if fits, err := regexp.MatchString(wanted.(string), text); isText && fits && err == nil {
			return nil
		}
	case "$contiguous":
		for i, item := range items {
			next := json.Number(strconv.Itoa(int(count) + i))
			if err := difference(object{"run_sequence": next}, item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case "$kinds":
		left := wanted.([]any)
		for _, item := range items {
			if len(left) > 0 && item.(object)["kind"] == left[0] {
				left = left[1:]
			}
		}
		if len(left) == 0 {
			return nil
		}
	}
	return unlike(path, name+" "+short(wanted), got)
}

func has(wanted, items []any, path string) error {
	for _, each := range wanted {
		found := false
		for _, item := range items {
			found = found || difference(each, item, "") == nil
		}
		if !found {
			return unlike(path, "an item like "+short(each), items)
		}
	}
	return nil
}

func unlike(path, wanted string, got any) error {
	return fmt.Errorf("%s: %s is expected, not %s", strings.TrimPrefix(path, "."), wanted, short(got))
}

func short(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.2000s", data)
}

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// filled puts the variables into what a step says, but not into the names to save under.
func (p *player) filled(value any) any {
	switch value := value.(type) {
	case string:
		if whole := variable.FindString(value); whole == value && whole != "" {
			return p.vars[whole[2:len(whole)-1]]
		}
		return variable.ReplaceAllStringFunc(value, func(found string) string {
			return fmt.Sprint(p.vars[found[2:len(found)-1]])
		})
	case []any:
		list := []any{}
		for _, item := range value {
			list = append(list, p.filled(item))
		}
		return list
	case object:
		filled := object{}
		for key, item := range value {
			filled[p.filled(key).(string)] = p.filled(item)
		}
		return filled
	}
	return value
}

func at(got any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch inner := got.(type) {
		case object:
			got = inner[part]
		case []any:
			index, _ := strconv.Atoi(part)
			got = inner[index]
		}
	}
	return got
}

func or(given any, otherwise string) string {
	if text, ok := given.(string); ok {
		return text
	}
	return otherwise
}

// watch is a watch of the library that is read in the background.
type watch struct {
	leave context.CancelFunc
	done  chan struct{} // closed when it has ended
	news  chan struct{} // holds one when there may be more
	mu    sync.Mutex
	items []any
	taken int
	err   error
}

func begin(ctx context.Context, client *Client, verb string, given any) (*watch, error) {
	ctx, leave := context.WithCancel(ctx)
	w := &watch{leave: leave, done: make(chan struct{}), news: make(chan struct{}, 1), items: []any{}}
	run, runs, asks := &crewdv1.WatchRunRequest{}, &crewdv1.WatchRunsRequest{}, &crewdv1.WatchAsksRequest{}
	request := map[string]proto.Message{"watch_run": run, "watch_runs": runs, "watch_asks": asks}[verb]
	if err := read(given, request); err != nil {
		leave()
		return nil, err
	}
	switch verb {
	case "watch_run":
		go follows(w, client.WatchRun(ctx, run), func(event *crewdv1.Event) (any, error) { return printed(event, nil) })
	case "watch_runs":
		go follows(w, client.WatchRuns(ctx, runs.Filter), changed)
	case "watch_asks":
		go follows(w, client.WatchAsks(ctx, asks.Filter), changed)
	}
	return w, nil
}

func changed[T proto.Message](change Change[T]) (any, error) {
	items, removed := []any{}, []any{}
	for _, item := range change.Items {
		shown, err := printed(item, nil)
		if err != nil {
			return nil, err
		}
		items = append(items, shown)
	}
	for _, id := range change.RemovedIDs {
		removed = append(removed, id)
	}
	return object{"items": items, "removed_ids": removed, "complete": change.Complete}, nil
}

func follows[T any](w *watch, items iter.Seq2[T, error], show func(T) (any, error)) {
	defer close(w.done)
	for item, err := range items {
		var shown any
		if err == nil {
			shown, err = show(item)
		}
		w.mu.Lock()
		if w.err = err; err == nil {
			w.items = append(w.items, shown)
		}
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// until takes items until one is as expected.
func (w *watch) until(ctx context.Context, expected any) (any, error) {
	if expected == nil {
		expected = object{}
	}
	for ended := false; ; {
		w.mu.Lock()
		items, err := w.items[w.taken:], w.err
		w.mu.Unlock()
		for _, item := range items {
			w.taken++
			if difference(expected, item, "") == nil {
				return item, nil
			}
		}
		if err != nil {
			return nil, err
		} else if ended {
			return nil, fmt.Errorf("the watch ended without it, after %s", short(items))
		}
		select {
		case <-w.news:
		case <-w.done:
			ended = true
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, after %s", ctx.Err(), short(items))
		}
	}
}

// end waits for the watch to end by itself.
func (w *watch) end(ctx context.Context) (any, error) {
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return w.items, w.err
}

// close leaves the watch in the middle.
func (w *watch) close() {
	w.leave()
	<-w.done
}
