package crewd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"crewd.dev/go/internal/check"
)

type variables map[string]string

// found locates in an environment without anything else, below a home without anything in it.
func (v variables) found(t *testing.T, options Options) Location {
	t.Helper()
	options.Env = func(name string) string { return v[name] }
	location, err := Locate(options)
	check.Fatal(t, err)
	return location
}

func TestTheStateDirectoryIsTheFirstThatIsNamed(t *testing.T) {
	env := variables{"HOME": "/h"}
	check.Equal(t, env.found(t, Options{}).StateDir, "/h/.local/state/crewd")
	env["XDG_STATE_HOME"] = "relative"
	check.Equal(t, env.found(t, Options{}).StateDir, "/h/.local/state/crewd")
	env["XDG_STATE_HOME"] = "/x"
	check.Equal(t, env.found(t, Options{}).StateDir, "/x/crewd")
	env["CREWD_STATE_DIR"] = "~/s"
	check.Equal(t, env.found(t, Options{}).StateDir, "/h/s")
	check.Equal(t, env.found(t, Options{StateDir: "/option"}).StateDir, "/option")
	check.Equal(t, variables{}.found(t, Options{StateDir: "~"}).StateDir != "~", true)
}

func TestOnlyTheDefaultStateDirectoryHasThePlainSocket(t *testing.T) {
	runtime := t.TempDir()
	env := variables{"HOME": "/h", "XDG_RUNTIME_DIR": runtime}
	check.Equal(t, env.found(t, Options{}).Socket, runtime+"/crewd/crewd.sock")
	check.Equal(t, env.found(t, Options{StateDir: "/s"}).Socket, "/s/crewd.sock")
	env["XDG_RUNTIME_DIR"] = "/not/there"
	check.Equal(t, env.found(t, Options{}).Socket, "/h/.local/state/crewd/crewd.sock")
}

func TestASocketPathOverAHundredBytesIsReplacedByAShortOne(t *testing.T) {
	long, private := "/"+strings.Repeat("d", 89), fmt.Sprintf("crewd-%d", os.Getuid())
	env := variables{"TMPDIR": "/srv"}
	check.Equal(t, env.found(t, Options{StateDir: long[:89]}).Socket, long[:89]+"/crewd.sock")
	short := env.found(t, Options{StateDir: long}).Socket
	check.Equal(t, filepath.Dir(short), "/srv/"+private)
	check.Equal(t, len(filepath.Base(short)), len("0123456789ab.sock"))
	env["TMPDIR"] = long
	check.Equal(t, env.found(t, Options{StateDir: long}).Socket, "/tmp/"+private+"/"+filepath.Base(short))
	env["XDG_RUNTIME_DIR"] = "/"
	check.Equal(t, env.found(t, Options{StateDir: long}).Socket, "/crewd/"+filepath.Base(short))
}

func TestTheDaemonFileNamesSocketAndTokenUnlessOthersDo(t *testing.T) {
	d := newDaemon(t)
	d.write("daemon.json", `{"protocol": 1, "pid": 1, "instance_id": "i", "store_id": "s", "version": "0", "later": 1, "state_dir": "`+
		d.stateDir+`", "socket": "/s.sock", "token_file": "`+d.stateDir+`/token"}`)
	env := variables{"HOME": d.stateDir, "CREWD_STATE_DIR": d.stateDir}
	check.Equal(t, env.found(t, Options{}).Socket, "/s.sock")
	check.Equal(t, env.found(t, Options{}).Token, "secret")
	env["CREWD_SOCKET"] = "~/e.sock"
	check.Equal(t, env.found(t, Options{}).Socket, d.stateDir+"/e.sock")
	check.Equal(t, env.found(t, Options{Socket: "/o.sock"}).Socket, "/o.sock")
}

func TestADaemonFileThatIsNoUseIsIgnored(t *testing.T) {
	d := newDaemon(t)
	about := `{"protocol": 1, "pid": 1, "instance_id": "i", "store_id": "s", "version": "0", "socket": "/s.sock", "token_file": "/t",
		"state_dir": "` + d.stateDir
	for _, text := range []string{"", "{", "[]", `"text"`, `{"protocol": 1}`, about + `/another"}`, about + `", "pid": "1"}`,
		about + `", "protocol": true}`, about + `", "instance_id": null}`, strings.Replace(about, "store_id", "Store_ID", 1) + `"}`} {
		d.write("daemon.json", text)
		found := variables{}.found(t, Options{StateDir: d.stateDir})
		check.Equal(t, found.Socket, d.stateDir+"/crewd.sock")
		check.Equal(t, found.Token, "secret")
	}
}

func TestTheTokenIsTheFirstThatIsNamed(t *testing.T) {
	d := newDaemon(t)
	d.write("file", " of the file \n")
	env := variables{"HOME": d.stateDir, "CREWD_STATE_DIR": d.stateDir, "CREWD_TOKEN": "", "CREWD_TASK_TOKEN": ""}
	check.Equal(t, env.found(t, Options{}).Token, "secret")
	env["CREWD_TOKEN_FILE"] = "~/missing"
	check.Equal(t, env.found(t, Options{}).Token, "")
	env["CREWD_TOKEN_FILE"] = "~/file"
	check.Equal(t, env.found(t, Options{}).Token, "of the file")
	env["CREWD_TOKEN"] = "given"
	check.Equal(t, env.found(t, Options{}).TaskToken, false)
	check.Equal(t, env.found(t, Options{}).Token, "given")
	env["CREWD_TASK_TOKEN"] = "task"
	check.Equal(t, env.found(t, Options{}).TaskToken, true)
	check.Equal(t, env.found(t, Options{}).Token, "task")
}

func TestSymbolicLinksLeadToTheSamePlace(t *testing.T) {
	dir := resolve(t.TempDir())
	check.Fatal(t, os.Mkdir(dir+"/real", 0o700))
	check.Fatal(t, os.Symlink("real", dir+"/alias"))
	check.Equal(t, variables{}.found(t, Options{StateDir: dir + "/alias"}).StateDir, dir+"/real")
	check.Equal(t, variables{}.found(t, Options{StateDir: dir + "/alias/not/there"}).StateDir, dir+"/real/not/there")
	check.Fatal(t, os.Symlink(dir+"/alias/../later", dir+"/dangling"))
	check.Equal(t, variables{}.found(t, Options{StateDir: dir + "/dangling/a"}).StateDir, dir+"/later/a")
	check.Fatal(t, os.Symlink("circle", dir+"/circle"))
	check.Equal(t, variables{}.found(t, Options{StateDir: dir + "/circle/a"}).StateDir, dir+"/circle/a")
}

func TestADirectoryThatOthersCanWriteToIsRefused(t *testing.T) {
	temp := t.TempDir()
	private := filepath.Join(temp, fmt.Sprintf("crewd-%d", os.Getuid()))
	env := variables{"TMPDIR": temp}
	options := Options{StateDir: "/" + strings.Repeat("d", 99), Env: func(name string) string { return env[name] }}
	check.Fatal(t, os.Mkdir(private, 0o700))
	_, err := Locate(options)
	check.Fatal(t, err)

	check.Fatal(t, os.Chmod(private, 0o770))
	_, err = Locate(options)
	check.Equal(t, status.Code(err), codes.Unavailable)
	_, err = Connect(t.Context(), options)
	check.Equal(t, status.Code(err), codes.Unavailable)
	check.Contains(t, err.Error(), private)
}
