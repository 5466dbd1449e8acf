// Package crewdjson has crewd's JSON form of the contract's messages, as `crew --json` prints and
// reads it: names as in the contract, enums in lower case without prefix, 64-bit integers as numbers,
// defaults printed, an event's payload under data.
package crewdjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	pr "google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Marshal gives a message in crewd's JSON form.
func Marshal(m proto.Message) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	return reform(data, m, true)
}

// Unmarshal reads crewd's JSON form. Enums may be written in any case, with - for _, and by their full
// names. The error says all that does not fit.
func Unmarshal(data []byte, m proto.Message) error {
	data, err := reform(data, m, false)
	if err == nil {
		err = protojson.Unmarshal(data, m)
	}
	if err != nil {
		return fmt.Errorf("not a %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// reform makes crewd's form of protojson's, to be printed, or the other way round.
func reform(data []byte, m proto.Message, printed bool) ([]byte, error) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // all digits
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	} else if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("there is more after its end")
	}
	f := former{printed: printed}
	tree = f.message(m.ProtoReflect().Descriptor(), tree, "")
	if len(f.problems) > 0 {
		slices.Sort(f.problems)
		return nil, errors.New(strings.Join(f.problems, "; "))
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(tree)
	return bytes.TrimSpace(out.Bytes()), err
}

// former forms the tree of a message and notes all that does not fit.
type former struct {
	printed  bool
	problems []string
}

func (f *former) wrong(path, format string, values ...any) any {
	f.problems = append(f.problems, strings.Trim(path+": "+fmt.Sprintf(format, values...), ".: "))
	return nil
}

func (f *former) message(kind pr.MessageDescriptor, value any, path string) any {
	given, isObject := value.(map[string]any)
	if kind.FullName() == "google.protobuf.Duration" {
		return f.duration(strings.TrimSpace(fmt.Sprint(value)), path)
	} else if kind.FullName().Parent() == "google.protobuf" {
		data, err := json.Marshal(value)
		if err = errors.Join(err, protojson.Unmarshal(data, dynamicpb.NewMessage(kind))); err != nil {
			return f.wrong(path, "%v", err)
		}
		return value
	} else if !isObject {
		return f.wrong(path, "a mapping is expected")
	}
	formed, isEvent := map[string]any{}, kind.FullName() == "crewd.v1.Event"
	if isEvent && f.printed {
		formed["data"] = map[string]any{}
	}
	for key, item := range given {
		name := key
		if isEvent && key == "data" {
			name = fmt.Sprint(given["kind"])
		}
		field := kind.Fields().ByName(pr.Name(name))
		if isEvent && f.printed && field.ContainingOneof() != nil {
			name = "data"
		}
		if payload, ok := item.(map[string]any); field != nil {
			formed[name] = f.field(field, item, path+"."+key)
		} else if key == name || !ok || len(payload) > 0 {
			f.wrong(path+"."+key, "unknown key %q", name)
		}
	}
	return formed
}

func (f *former) field(field pr.FieldDescriptor, value any, path string) any {
	items, isList := value.([]any)
	values, isMap := value.(map[string]any)
	if value == nil {
		return nil
	} else if field.IsList() && isList {
		for i, item := range items {
			items[i] = f.one(field, item, fmt.Sprintf("%s[%d]", path, i))
		}
	} else if field.IsMap() && isMap {
		for key, item := range values {
			values[key] = f.one(field.MapValue(), item, path+"."+key)
		}
	} else if field.Cardinality() == pr.Repeated {
		return f.wrong(path, "a list or a mapping is expected")
	} else {
		return f.one(field, value, path)
	}
	return value
}

func (f *former) one(field pr.FieldDescriptor, value any, path string) any {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	_, isBool := value.(bool)
	_, not32 := strconv.ParseInt(number.String(), 10, 32)
	_, not64 := strconv.ParseInt(number.String(), 10, 64)
	fits := map[pr.Kind]bool{pr.StringKind: isText, pr.BytesKind: isText, pr.BoolKind: isBool, pr.DoubleKind: isNumber,
		pr.EnumKind: isNumber, pr.Int32Kind: not32 == nil, pr.Int64Kind: not64 == nil}
	switch kind := field.Kind(); {
	case kind == pr.MessageKind:
		return f.message(field.Message(), value, path)
	case kind == pr.EnumKind && isText:
		return f.enum(field.Enum().Values(), text, path)
	case kind == pr.Int64Kind && f.printed:
		return json.Number(text)
	case !f.printed && !fits[kind]:
		return f.wrong(path, "%s is expected, not %v", kind, value)
	}
	return value
}

func (f *former) enum(values pr.EnumValueDescriptors, text, path string) any {
	prefix := strings.TrimSuffix(string(values.Get(0).Name()), "UNSPECIFIED")
	word := strings.ToUpper(strings.ReplaceAll(text, "-", "_"))
	if f.printed {
		return strings.ToLower(strings.TrimPrefix(text, prefix))
	} else if values.ByName(pr.Name(prefix+word)) != nil {
		return prefix + word
	} else if values.ByName(pr.Name(word)) != nil {
		return word
	}
	return f.wrong(path, "%q is none of its values", text)
}

// duration reads what people write, such as 90, 1.5s or 1d12h, and prints seconds.
func (f *former) duration(text, path string) any {
	if f.printed && strings.Contains(text, ".") {
		return strings.TrimRight(text, "0s") + "s"
	} else if f.printed {
		return text
	} else if strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	span, err := time.ParseDuration(cmp.Or(rest, "0s"))
	hours, notDays := time.ParseDuration(days + "h")
	if span += 24 * hours; err != nil || notDays != nil || span < 0 {
		return f.wrong(path, "%q is no duration: write e.g. 30s, 1.5s, 2m or 1h30m", text)
	}
	return fmt.Sprintf("%d.%09ds", span/time.Second, span%time.Second)
}
