package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/gorilla/websocket"

	"redrive/internal/freeport"
	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// deployed is the folder with the files of Redrive on PostgreSQL.
const deployed = "../../deploy/postgres/"

// composition is what a compose file says.
type composition struct {
	Services map[string]service
	Networks map[string]struct {
		IPAM struct {
			Config []struct {
				Subnet, Gateway string
				Range           string `yaml:"ip_range"`
			}
		}
	}
	Volumes map[string]any
}

type service struct {
	Image, Hostname       string
	Command               []string
	Environment           map[string]string
	Volumes, Ports, Tmpfs []string
	Networks              any
	Healthcheck           struct {
		Test    []string
		Disable bool
	}
	StopGracePeriod string `yaml:"stop_grace_period"`
}

func readComposition(t *testing.T, path string) (c composition) {
	t.Helper()

	err := yaml.Unmarshal([]byte(textOf(t, path)), &c)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func textOf(t *testing.T, path string) string {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// image is what the Dockerfile says of the program in it.
type image struct {
	start       []string // the entrypoint and its arguments
	environment map[string]string
	port        string
	data        string // a folder that is a volume
}

func readImage(t *testing.T) (i image) {
	t.Helper()

	i.environment = map[string]string{}
	for line := range strings.Lines(textOf(t, "../../Dockerfile")) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "ENTRYPOINT", "CMD":
			var words []string
			if err := json.Unmarshal([]byte(value), &words); err != nil {
				t.Fatal(err)
			}
			i.start = append(i.start, words...)
		case "ENV":
			for _, pair := range strings.Fields(value) {
				name, value, _ := strings.Cut(pair, "=")
				i.environment[name] = value
			}
		case "EXPOSE":
			i.port = value
		case "VOLUME":
			i.data = value
		}
	}

	return i
}

// secrets are what a person writes into .env.
var secrets = map[string]string{"REDRIVE_PASSWORD": "hidden-word", "POSTGRES_PASSWORD": "other-word"}

// environment is what a service sees. Where an address of the file is not one of this machine,
// another one takes its place.
func environment(s service, elsewhere *strings.Replacer) (all []string) {
	variable := regexp.MustCompile(`\$\{(\w+)[^}]*\}`)
	for name, value := range s.Environment {
		value = variable.ReplaceAllStringFunc(value, func(found string) string {
			return secrets[variable.FindStringSubmatch(found)[1]]
		})
		all = append(all, name+"="+elsewhere.Replace(value))
	}

	return all
}

// pair is what the compose file describes, on this machine.
type pair struct {
	t           *testing.T
	file        composition
	image       image
	elsewhere   *strings.Replacer // puts an address of this machine for each one in the files
	dsn         string
	url         string // of the balancer
	token       string
	first, next *rig.Process
	said        *rig.Transcript // of the balancer
}

// newPair makes the database, and finds an address for each service.
func newPair(t *testing.T, handlers string) *pair {
	t.Helper()

	p := &pair{t: t, file: readComposition(t, deployed+"compose.yaml"), image: readImage(t)}
	bare, run := postgrestest.Bare(t, "")
	psql := psqlOf(t)
	server, err := url.Parse(bare)
	if err != nil {
		t.Fatal(err)
	}

	// As after a first start whose database.sql failed.
	out, err := p.databaseIsHealthy(psql, server.Port())
	if err == nil {
		t.Errorf("the database is healthy without the role and the database of Redrive: %s", out)
	}

	sql := exec.Command(psql, "--no-psqlrc", "--quiet", "--file", deployed+"database.sql", bare)
	sql.Env = append(sql.Environ(), environment(p.file.Services["database"], strings.NewReplacer())...)
	out, err = sql.CombinedOutput()
	t.Cleanup(func() {
		run(`DROP DATABASE IF EXISTS redrive WITH (FORCE)`)
		run(`DROP ROLE IF EXISTS redrive`)
	})
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	out, err = p.databaseIsHealthy(psql, server.Port())
	if err != nil {
		t.Errorf("the database is not healthy: %v: %s", err, out)
	}

	first, next, balancer := freePort(t), freePort(t), freePort(t)
	p.url = "http://127.0.0.1:" + balancer
	p.elsewhere = strings.NewReplacer("@database/", "@"+server.Host+"/", "redrive-1:8080", "127.0.0.1:"+first, "redrive-2:8080", "127.0.0.1:"+next,
		"bind :8080", "bind 127.0.0.1:"+balancer, "127.0.0.1:8080", "127.0.0.1:"+balancer, "172.30.80.2", "127.0.0.1")
	p.dsn = p.elsewhere.Replace(p.file.Services["redrive-1"].Environment["REDRIVE_DB"])

	p.first, p.next = p.process("redrive-1", first, handlers), p.process("redrive-2", next, handlers)

	return p
}

// databaseIsHealthy runs the health check of the database.
func (p *pair) databaseIsHealthy(psql, port string) (out []byte, err error) {
	p.t.Helper()

	database := p.file.Services["database"]
	how, command := database.Healthcheck.Test[0], database.Healthcheck.Test[1]
	if how != "CMD-SHELL" {
		p.t.Fatalf("the health check of the database is %s, and needs a shell that knows the password", how)
	}

	check := exec.Command("sh", "-c", strings.ReplaceAll(command, "$$", "$"))
	check.Env = append(check.Environ(), environment(database, strings.NewReplacer())...)
	check.Env = append(check.Env, "PGPORT="+port, "PATH="+filepath.Dir(psql)+":"+os.Getenv("PATH"))

	return check.CombinedOutput()
}

// psqlOf finds the newest psql. On a machine without it the test is skipped, and in CI it fails.
func psqlOf(t *testing.T) (path string) {
	t.Helper()

	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}

	path, err = exec.LookPath("psql")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("psql is not installed")
	}
	if err != nil {
		t.Fatal(err)
	}

	return path
}

// freePort is a port of this machine at which no program listens.
func freePort(t *testing.T) string {
	t.Helper()

	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}

	return port
}

// process is that of a service, which is not started yet. Beside it is its configuration.
func (p *pair) process(name, port, handlers string) *rig.Process {
	p.t.Helper()

	dir := p.t.TempDir()
	rig.Write(p.t, dir, "redrive.yaml", p.elsewhere.Replace(textOf(p.t, deployed+"redrive.yaml"))+handlers)

	process := &rig.Process{T: p.t, Cmd: p.command(name, dir, p.image.start[1:]...), Stderr: rig.NewTranscript()}
	process.Cmd.Env = append(process.Cmd.Env, "REDRIVE_LISTEN="+strings.Replace(p.image.environment["REDRIVE_LISTEN"], p.image.port, port, 1))
	process.Cmd.Stderr = process.Stderr
	p.t.Cleanup(func() {
		if process.Cmd.Process != nil && process.Cmd.ProcessState == nil {
			process.Stop(os.Kill)
		}
	})

	return process
}

// command runs the program as in the container of a service.
func (p *pair) command(name, dir string, args ...string) *exec.Cmd {
	p.t.Helper()

	cmd := rig.Command(p.t, dir, args...)
	for name, value := range p.image.environment {
		if name != "PATH" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, environment(p.file.Services[name], p.elsewhere)...)

	return cmd
}

// finish runs a command of the program in a container of its own, as docker compose run does.
func (p *pair) finish(input string, args ...string) (stdout string) {
	p.t.Helper()

	cmd := p.command("redrive-1", p.t.TempDir(), args...)
	cmd.Stdin = strings.NewReader(input)
	code, stdout, stderr := rig.Finish(p.t, cmd)
	if code != 0 {
		p.t.Fatalf("%q: exit %d: %s", args, code, stderr)
	}

	return stdout
}

// balance starts the real balancer with its real configuration. On a machine without it the test
// is skipped, and in CI it fails.
func (p *pair) balance() {
	p.t.Helper()

	program, err := exec.LookPath("/usr/sbin/haproxy")
	if err != nil && os.Getenv("CI") == "" {
		p.t.Skip("HAProxy is not installed")
	}
	if err != nil {
		p.t.Fatal(err)
	}

	dir := p.t.TempDir()
	rig.Write(p.t, dir, "haproxy.cfg", p.elsewhere.Replace(textOf(p.t, deployed+"haproxy.cfg")))
	p.said = rig.NewTranscript()
	balancer := exec.Command(program, "-db", "-f", filepath.Join(dir, "haproxy.cfg"))
	balancer.Stdout = p.said
	if err := balancer.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = balancer.Process.Signal(syscall.SIGTERM)
		_ = balancer.Wait()
		if p.t.Failed() {
			p.t.Logf("the balancer says:\n%s", p.said)
		}
	})
}

// ready asks as the health check of the balancer does.
func (p *pair) ready() bool {
	test := p.file.Services["balancer"].Healthcheck.Test
	response, err := http.Get(p.elsewhere.Replace(test[len(test)-1]))
	if err != nil {
		return false // it does not listen yet
	}
	_ = response.Body.Close()

	return response.StatusCode == http.StatusOK
}

// do sends a request through the balancer, from an address of its own.
func (p *pair) do(method, path, body string) (status int, answer string, err error) {
	return p.doWith(p.header(), method, path, body)
}

func (p *pair) doWith(header http.Header, method, path, body string) (status int, answer string, err error) {
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")

	response, err := people.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()

	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)

	return response.StatusCode, text.String(), err
}

// header has the token, and what the balancer must not pass on.
func (p *pair) header() http.Header {
	return http.Header{
		"Authorization": {"Bearer " + p.token}, "X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-User": {"mallory"}, "X-Forwarded-Host": {"evil.example"},
	}
}

// peoplesAddress is that of clients, which is not the balancer's.
const peoplesAddress = "127.0.0.5"

var people = &http.Client{Transport: &http.Transport{
	DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(peoplesAddress)}}).DialContext,
}}

// hang is how long a page waits for the next message before the test is given up. Redrive sends
// something every 30 seconds.
const hang = 3 * time.Minute

// pageThatShows opens the websocket of a page through the balancer, and follows its totals until they
// are as wanted. As a browser does, it connects again when the balancer has closed it.
func (p *pair) pageThatShows(wanted func(rig.Totals) bool) (page *websocket.Conn) {
	p.t.Helper()

	rig.Eventually(p.t, "a page shows the totals", func() bool {
		var err error
		page, _, err = websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(p.url, "http")+"/live", p.header())
		if err != nil {
			return false
		}
		p.t.Cleanup(func() { _ = page.Close() })

		var now rig.Totals
		for err == nil && !wanted(now) {
			_ = page.SetReadDeadline(time.Now().Add(hang))
			err = page.ReadJSON(&now)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.t.Fatalf("the page shows nothing more after %+v", now)
		}

		return err == nil
	})

	return page
}

// enqueueUntil sends jobs through the balancer until no process takes them any more, and returns
// the ids of those that were acknowledged. It calls enough when these are many.
func (p *pair) enqueueUntil(enough func()) (acknowledged []string) {
	var mu sync.Mutex
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for {
				var answer struct{ Job struct{ ID string } }
				status, body, err := p.do(http.MethodPost, "/api/v1/jobs", `{"type":"work.do","queue":"work","payload":{"n":1}}`)
				if err != nil || status != http.StatusCreated || json.Unmarshal([]byte(body), &answer) != nil {
					return
				}

				mu.Lock()
				acknowledged = append(acknowledged, answer.Job.ID)
				many := len(acknowledged) == 100
				mu.Unlock()

				if many {
					enough()
				}
			}
		})
	}
	senders.Wait()

	return acknowledged
}

// The files of deploy/postgres do what they say: people and clients reach the process that works
// through the balancer. When it is killed, they reach the other one, and no job is lost.
func TestCompose_TheBalancerFollowsTheProcessThatWorks(t *testing.T) {
	const running = 20
	worker := rig.NewHolding(running)
	web := httptest.NewServer(worker)
	defer web.Close()

	p := newPair(t, fmt.Sprintf(working, web.URL))
	p.balance()
	p.finish(rig.AnaPassword, "user", "add", "ana", "--role", "admin")
	p.token = strings.TrimSpace(p.finish("", "token", "create", "--name", "shop", "--role", "admin"))

	start(t, p.first, "Redrive is ready.")
	start(t, p.next, "Standing by")
	rig.Eventually(t, "the balancer is healthy", p.ready)

	page := p.pageThatShows(func(now rig.Totals) bool { return now.States != nil })
	p.believesTheBalancer()
	p.logsIn()

	missed := p.missed("redrive-1")
	acknowledged := p.enqueueUntil(func() {
		<-worker.Full
		_ = p.first.Cmd.Process.Kill()
	})
	p.first.Wait()
	close(worker.Open)
	untilClosed(t, page)

	postgrestest.ExpireLease(t, p.dsn)
	p.next.Says("Redrive is ready.")
	rig.Eventually(t, "the balancer has found the other one", p.ready)

	page = p.pageThatShows(func(now rig.Totals) bool { return now.States["completed"] >= len(acknowledged) })
	p.completed(acknowledged)

	// The one that was killed is started again, and stands by. It gets no requests.
	rig.Eventually(t, "the balancer has missed it", func() bool { return p.missed("redrive-1") > missed })
	again := p.process("redrive-1", strings.TrimPrefix(p.elsewhere.Replace("redrive-1:8080"), "127.0.0.1:"), "")
	start(t, again, "Standing by")
	for range 10 {
		if !p.ready() {
			t.Error("the balancer sends requests to a process that stands by")
		}
	}

	p.worksWithAFullDisk()

	// One that is frozen ends no connection: the balancer does.
	if err := p.next.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	untilClosed(t, page)
	postgrestest.ExpireLease(t, p.dsn)
	again.Says("Redrive is ready.")
	rig.Eventually(t, "the balancer has found the first one again", p.ready)
}

// worksWithAFullDisk lets the database refuse each write. The process that works is not ready then, and
// people and clients reach it all the same.
func (p *pair) worksWithAFullDisk() {
	p.t.Helper()

	postgrestest.Query(p.t, p.dsn, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = 'disk_full'; END $$`)
	postgrestest.Query(p.t, p.dsn, `CREATE TRIGGER refuse BEFORE UPDATE ON revision FOR EACH STATEMENT EXECUTE FUNCTION refuse()`)
	_, body, err := p.do(http.MethodPost, "/api/v1/jobs", `{"type":"work.do","queue":"work"}`)
	if err != nil || !strings.Contains(body, "storage_full") {
		p.t.Errorf("a job that the disk has no room for: %v: %s", err, body)
	}

	for range 200 {
		status, body, err := p.do(http.MethodGet, "/api/v1/jobs", "")
		if err != nil || status != http.StatusOK {
			p.t.Fatalf("while the disk is full, a client gets %d, %v: %s", status, err, body)
		}
	}
	status, body, err := p.do(http.MethodGet, "/readyz", "")
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "is full") {
		p.t.Errorf("while the disk is full, /readyz answers %d, %v: %s", status, err, body)
	}

	postgrestest.Query(p.t, p.dsn, `DROP TRIGGER refuse ON revision`)
}

// missed is how often the balancer has found a process gone.
func (p *pair) missed(name string) int {
	return strings.Count(p.said.String(), name+" is DOWN")
}

func start(t *testing.T, p *rig.Process, says string) {
	t.Helper()

	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Says(says)
}

// untilClosed reads until the connection of a page has ended, as a browser does, which connects
// again then.
func untilClosed(t *testing.T, page *websocket.Conn) {
	t.Helper()

	err := page.SetReadDeadline(time.Now().Add(hang))
	for err == nil {
		_, _, err = page.ReadMessage()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the page still waits for a process that has gone")
	}
}

// believesTheBalancer checks who a request is from: the balancer says which address it came from,
// and no client can say so, or that it is someone else.
func (p *pair) believesTheBalancer() {
	p.t.Helper()

	for _, act := range []string{"pause", "resume"} { // which are in the audit log
		status, body, err := p.do(http.MethodPost, "/api/v1/queues/work/"+act, "")
		if err != nil || status != http.StatusOK {
			p.t.Fatalf("%s: %d, %v: %s", act, status, err, body)
		}
	}

	stranger := p.header()
	stranger.Del("Authorization")
	status, body, err := p.doWith(stranger, http.MethodGet, "/api/v1/jobs", "")
	if err != nil || status != http.StatusUnauthorized {
		p.t.Errorf("a client that says who it is gets %d, %v: %s", status, err, body)
	}

	status, body, err = p.do(http.MethodGet, "/audit", "")
	if err != nil || status != http.StatusOK || !strings.Contains(body, peoplesAddress) || strings.Contains(body, "192.0.2.1") || strings.Contains(body, "mallory") {
		p.t.Errorf("the page of the audit log: %d, %v: %s", status, err, body)
	}
}

// logsIn logs in as a browser does.
func (p *pair) logsIn() {
	p.t.Helper()

	form := url.Values{"name": {"ana"}, "password": {rig.AnaPassword}}.Encode()
	request, err := http.NewRequest(http.MethodPost, p.url+"/login", strings.NewReader(form))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {p.url}, "Sec-Fetch-Site": {"same-origin"}}

	response, err := people.Transport.RoundTrip(request)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = response.Body.Close()

	if response.StatusCode != http.StatusSeeOther || len(response.Cookies()) != 1 || response.Cookies()[0].Secure {
		p.t.Errorf("a login over plain HTTP gets %s, %v", response.Status, response.Cookies())
	}
}

// completed checks that no job was lost.
func (p *pair) completed(ids []string) {
	p.t.Helper()

	for _, id := range ids {
		var d rig.Detail
		status, body, err := p.do(http.MethodGet, "/api/v1/jobs/"+id, "")
		if err != nil || status != http.StatusOK || json.Unmarshal([]byte(body), &d) != nil || d.Job.State != "completed" {
			p.t.Errorf("the job %s: %d, %v: %s", id, status, err, body)
		}
	}
}

// What the walk cannot start agrees with the image, with the files beside, and with itself.
func TestCompose_AgreesWithTheImage(t *testing.T) {
	c, root, i := readComposition(t, deployed+"compose.yaml"), readComposition(t, "../../compose.yaml").Services["redrive"], readImage(t)
	balancer, database := c.Services["balancer"], c.Services["database"]
	configured := textOf(t, deployed+"haproxy.cfg")

	for _, name := range []string{"redrive-1", "redrive-2"} {
		s := c.Services[name]
		if s.Image != root.Image || s.Command != nil || s.Hostname != name || s.StopGracePeriod != root.StopGracePeriod || !slices.Contains(s.Tmpfs, i.data) {
			t.Errorf("%s is %+v, the image is %+v, and the other compose file has %+v", name, s, i, root)
		}
		if !strings.Contains(configured, "server "+name+" "+name+":"+i.port) {
			t.Errorf("the balancer does not know %s", name)
		}
		if db, err := url.Parse(s.Environment["REDRIVE_DB"]); err != nil || db.User.String() != "redrive" || c.Services[db.Host].Image == "" {
			t.Errorf("%s works on %s", name, db)
		}
		if s.Environment["PGPASSWORD"] != database.Environment["REDRIVE_PASSWORD"] {
			t.Errorf("%s has another password than its role", name)
		}
	}

	if want := "0.0.0.0:" + i.port; i.environment["REDRIVE_LISTEN"] != want {
		t.Errorf("the image listens at %s, and the balancer asks %s", i.environment["REDRIVE_LISTEN"], want)
	}
	if _, inside, _ := strings.Cut(balancer.Ports[0], ":8080:"); !strings.Contains(configured, "bind :"+inside) {
		t.Errorf("the balancer does not listen at %s", inside)
	}

}

// The address of the balancer, which redrive.yaml trusts, is one of the network, and none that
// Docker gives to a container that starts before the balancer.
func TestCompose_KeepsTheAddressOfTheBalancer(t *testing.T) {
	c := readComposition(t, deployed+"compose.yaml")
	fixed := regexp.MustCompile(`ipv4_address:([\d.]+)`).FindStringSubmatch(fmt.Sprint(c.Services["balancer"].Networks))
	if fixed == nil || !strings.Contains(textOf(t, deployed+"redrive.yaml"), "["+fixed[1]+"]") {
		t.Fatalf("the balancer has the address %v, and redrive.yaml trusts another one", fixed)
	}

	network := c.Networks["inside"].IPAM.Config[0]
	subnet := netip.MustParsePrefix(network.Subnet)
	address := netip.MustParseAddr(fixed[1])
	if !subnet.Contains(address) || network.Gateway == fixed[1] {
		t.Errorf("%s is no free address of %+v", address, network)
	}

	given, err := netip.ParsePrefix(network.Range)
	if err != nil || !subnet.Contains(given.Addr()) || given.Contains(address) {
		t.Errorf("another container can get %s: Docker gives addresses of %q: %v", address, network.Range, err)
	}
}

// No secret is in the files, or on a command line, and what they mount is there.
func TestCompose_NamesFilesAndNoSecrets(t *testing.T) {
	c := readComposition(t, deployed+"compose.yaml")
	for name, s := range c.Services {
		for _, volume := range s.Volumes {
			from, _, _ := strings.Cut(volume, ":")
			_, declared := c.Volumes[from]
			if _, err := os.Stat(deployed + from); !declared && err != nil {
				t.Errorf("%s mounts %s: %v", name, from, err)
			}
		}
		for variable, value := range s.Environment {
			if strings.Contains(variable, "PASSWORD") && !regexp.MustCompile(`^\$\{\w+:\?[^}]+\}$`).MatchString(value) {
				t.Errorf("%s: %s is not taken from .env, or may be missing there", name, variable)
			}
		}
		// A variable with two dollar signs is one of the shell inside.
		all := fmt.Sprint(s.Command, s.Healthcheck.Test)
		if regexp.MustCompile(`\$\{?\w*PASSWORD`).MatchString(regexp.MustCompile(`\$\$\w+`).ReplaceAllString(all, "")) {
			t.Errorf("%s: every user of the machine can read %s", name, all)
		}
		if !s.Healthcheck.Disable && len(s.Healthcheck.Test) == 0 {
			t.Errorf("%s has no health check, and does not say why", name)
		}
	}
}
