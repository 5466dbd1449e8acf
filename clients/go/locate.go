package crewd

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
)

// Location is where a client looks for the daemon.
type Location struct {
	StateDir, Socket string // absolute; the directory without symbolic links
	Token            string // empty: none was found
	TaskToken        bool   // the token is a worker's, for its task's calls
	anyStateDir      bool   // only a socket was named
}

// Locate finds the daemon by the rules it follows itself. It reads files and connects to nothing.
func Locate(options Options) (Location, error) {
	env := environment(options.Env)
	if env == nil {
		env = os.Getenv
	}
	standard := resolve(cmp.Or(env.absolute("XDG_STATE_HOME"), env.expand("~/.local/state")) + "/crewd")
	named, socket := cmp.Or(options.StateDir, env("CREWD_STATE_DIR")), cmp.Or(options.Socket, env("CREWD_SOCKET"))
	found := Location{TaskToken: env("CREWD_TASK_TOKEN") != "", anyStateDir: socket != "" && named == ""}
	found.StateDir = resolve(cmp.Or(env.expand(named), standard))
	told, tokenFile := readDaemonFile(found.StateDir)
	found.Socket, _ = filepath.Abs(cmp.Or(env.expand(socket), told, env.socket(found.StateDir, found.StateDir == standard)))
	// A worker's token stands alone: it must not reach for the operator's by mistake.
	if found.Token = cmp.Or(env("CREWD_TASK_TOKEN"), env("CREWD_TOKEN")); found.Token == "" {
		text, _ := os.ReadFile(cmp.Or(env.expand(env("CREWD_TOKEN_FILE")), tokenFile, found.StateDir+"/token"))
		found.Token = strings.TrimSpace(string(text)) // without one, the daemon says what is missing
	}
	return found, checkPrivate(filepath.Dir(found.Socket))
}

// daemonFile has every key of a daemon.json, with a value of its type.
var daemonFile = map[string]any{"protocol": 0.0, "pid": 0.0, "instance_id": "", "store_id": "", "version": "",
	"socket": "", "token_file": "", "state_dir": ""}

// readDaemonFile gives what a daemon tells of itself; nothing if the file is not whole, or about another directory.
func readDaemonFile(stateDir string) (socket, tokenFile string) {
	var told map[string]any
	text, err := os.ReadFile(stateDir + "/daemon.json")
	whole := err == nil && json.Unmarshal(text, &told) == nil
	for key, like := range daemonFile {
		whole = whole && reflect.TypeOf(told[key]) == reflect.TypeOf(like)
	}
	if !whole || resolve(told["state_dir"].(string)) != stateDir {
		return "", ""
	}
	return told["socket"].(string), told["token_file"].(string)
}

// environment gives variables. An empty one counts as unset.
type environment func(string) string

func (e environment) absolute(name string) string {
	if path := e(name); filepath.IsAbs(path) {
		return path
	}
	return ""
}

func (e environment) expand(path string) string {
	rest, atHome := strings.CutPrefix(path+"/", "~/")
	if !atHome {
		return path
	}
	home := e.absolute("HOME")
	if who, err := user.Current(); home == "" && err == nil {
		home = who.HomeDir
	}
	return filepath.Join(home, rest)
}

// socket gives the first place with a path that is short enough.
func (e environment) socket(stateDir string, standard bool) string {
	digest := sha256.Sum256([]byte(stateDir))
	name := fmt.Sprintf("%x.sock", digest[:6])
	places := []string{stateDir + "/crewd.sock"}
	runtime := e.absolute("XDG_RUNTIME_DIR")
	if info, err := os.Stat(runtime); err == nil && info.IsDir() {
		places = append(places, filepath.Join(runtime, "crewd", name))
		if standard {
			places = slices.Insert(places, 0, filepath.Join(runtime, "crewd/crewd.sock"))
		}
	}
	places = append(places, filepath.Join(cmp.Or(e.absolute("TMPDIR"), "/tmp"), private(), name), "/tmp/"+private()+"/"+name)
	return places[slices.IndexFunc(places, func(path string) bool { return len(path) <= 100 })]
}

func private() string { return fmt.Sprintf("crewd-%d", os.Getuid()) }

// checkPrivate refuses a directory for our sockets alone if others could tamper with it.
func checkPrivate(directory string) error {
	info, err := os.Lstat(directory)
	if filepath.Base(directory) != private() || os.IsNotExist(err) || err == nil && info.IsDir() &&
		int(info.Sys().(*syscall.Stat_t).Uid) == os.Getuid() && info.Mode()&0o022 == 0 {
		return nil
	}
	return &Error{Code: codes.Unavailable, Message: directory + " is not ours alone: others could tamper with it"}
}

// resolve follows symbolic links, also those that lead to nothing yet.
func resolve(path string) string {
	real, links := "/", 0
	for rest, _ := filepath.Abs(path); rest != ""; {
		part, after, _ := strings.Cut(rest, "/")
		real, rest = filepath.Join(real, part), after
		if link, err := os.Readlink(real); err == nil && links < 40 { // more go round in a circle
			real, rest, links = filepath.Dir(real), link+"/"+after, links+1
			if filepath.IsAbs(link) {
				real = "/"
			}
		}
	}
	return real
}
