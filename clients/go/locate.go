package crewd

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
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
	found := Location{StateDir: standard, TaskToken: env("CREWD_TASK_TOKEN") != "", anyStateDir: socket != "" && named == ""}
	if named != "" {
		found.StateDir = resolve(env.expand(named))
	}
	var daemon struct {
		Protocol, Pid   int
		Socket, Version string
		TokenFile       string `json:"token_file"`
		StateDir        string `json:"state_dir"`
	}
	text, err := os.ReadFile(found.StateDir + "/daemon.json")
	if err != nil || json.Unmarshal(text, &daemon) != nil || resolve(daemon.StateDir) != found.StateDir {
		daemon.Socket, daemon.TokenFile = "", "" // it tells nothing of the daemon that is meant
	}
	found.Socket = cmp.Or(daemon.Socket, env.socket(found.StateDir, found.StateDir == standard))
	if socket != "" {
		found.Socket, _ = filepath.Abs(env.expand(socket))
	}
	// A worker's token stands alone: it must not reach for the operator's by mistake.
	if found.Token = cmp.Or(env("CREWD_TASK_TOKEN"), env("CREWD_TOKEN")); found.Token == "" {
		text, _ := os.ReadFile(cmp.Or(env.expand(env("CREWD_TOKEN_FILE")), daemon.TokenFile, found.StateDir+"/token"))
		found.Token = strings.TrimSpace(string(text)) // without one, the daemon says what is missing
	}
	return found, checkPrivate(filepath.Dir(found.Socket))
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
	places = append(places, filepath.Join(cmp.Or(e.absolute("TMPDIR"), "/tmp"), private(), name))
	if fitting := slices.IndexFunc(places, func(path string) bool { return len(path) <= 100 }); fitting >= 0 {
		return places[fitting]
	}
	return filepath.Join("/tmp", private(), name)
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

// resolve follows symbolic links as far as there is something.
func resolve(path string) string {
	path, _ = filepath.Abs(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil && path != "/" {
		return filepath.Join(resolve(filepath.Dir(path)), filepath.Base(path))
	}
	return real
}
