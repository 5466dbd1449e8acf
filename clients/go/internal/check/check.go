// Package check has what tests say often.
package check

import (
	"strings"
	"testing"
)

// Fatal ends the test if there is an error.
func Fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal ends the test unless both are equal.
func Equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// Contains ends the test unless the text has all parts.
func Contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Fatalf("%s lacks %s", text, part)
		}
	}
}
