package workers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// rabbitProgram is where Debian's package has the server. The command of this name in the
// path would run it as another user.
const rabbitProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// rabbitServer starts a RabbitMQ for one test, with files, a name and a port mapper of its
// own, and returns its URL.
func rabbitServer(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat(rabbitProgram); err != nil {
		missing(t, "rabbitmq-server is missing: sudo apt-get install rabbitmq-server")
	}
	address, port := free(t)
	_, mapper := free(t)
	_, peers := free(t)
	dir := t.TempDir()
	conf := filepath.Join(dir, "rabbitmq.conf")
	if err := os.WriteFile(conf, []byte("listeners.tcp.1 = "+address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{exec.Command("epmd", "-port", mapper), exec.Command(rabbitProgram)} {
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "ERL_EPMD_PORT="+mapper, "ERL_EPMD_ADDRESS=127.0.0.1",
			"RABBITMQ_NODENAME=shop-"+port+"@localhost", "RABBITMQ_DIST_PORT="+peers, "RABBITMQ_CONF_ENV_FILE=/dev/null",
			"RABBITMQ_MNESIA_BASE="+dir, "RABBITMQ_LOG_BASE="+dir, "RABBITMQ_CONFIG_FILE="+conf,
			"RABBITMQ_ENABLED_PLUGINS_FILE="+filepath.Join(dir, "plugins"), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-start_epmd false +sbwt none")
		start(t, cmd)
	}
	answers(t, address)
	return "amqp://guest:guest@" + address + "/"
}
