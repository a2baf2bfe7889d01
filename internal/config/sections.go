package config

import (
	"bytes"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/httpclient"
	"redrive/internal/retention"
	"redrive/internal/webhook"
)

// Proxy is a proxy in front that has found out who sends a request.
type Proxy struct {
	Networks   []netip.Prefix         // from which it speaks; no other sender is believed
	UserHeader string                 // with the name
	RoleHeader string                 // with groups, by which roles are given; may be empty
	Roles      map[string]access.Role // by group
	Role       access.Role            // of every user whom it lets through; may be empty when there are groups
}

// Proxy is the proxy that is trusted; nil when there is none.
func (c *Config) Proxy() *Proxy { return c.proxy }

// BasePath is the path below which everything is, as "/redrive"; empty for the
// root.
func (c *Config) BasePath() string { return c.basePath }

// readAccess reads the section access, which says who may log in beside the
// users of the store: so far, a proxy.
func (c *Config) readAccess(v value) error {
	return v.fields(map[string]func(value) error{"proxy": optional(&c.proxy, readProxy)})
}

// readProxy reads a trusted proxy. Every half of a setting is an error: a proxy
// that is half configured would let in too many people, or none.
func readProxy(v value) (p Proxy, err error) {
	if err := v.mapping(); err != nil {
		return p, err
	}

	p.Roles = map[string]access.Role{}
	err = v.fields(map[string]func(value) error{
		"networks":    into(&p.Networks, listOf(network)),
		"user_header": into(&p.UserHeader, headerName),
		"role_header": into(&p.RoleHeader, headerName),
		"role":        into(&p.Role, role),
		"roles": func(v value) error {
			return v.entries(func(group string, v value) (err error) {
				if strings.TrimSpace(group) != group || group == "" || strings.Contains(group, ",") {
					return v.wrong("is not the name of a group: it is empty, or has a comma or spaces around it")
				}

				p.Roles[group], err = role(v)

				return err
			})
		},
	})
	switch {
	case err != nil:
		return p, err
	case len(p.Networks) == 0:
		return p, v.wrong("needs networks, for example [10.0.0.0/8]: headers are trusted only from there")
	case p.UserHeader == "":
		return p, v.wrong("needs a user_header, for example X-Forwarded-User")
	case (p.RoleHeader == "") != (len(p.Roles) == 0):
		return p, v.wrong("needs role_header and roles together: the header names groups, and roles says what each may do")
	case p.Role == "" && len(p.Roles) == 0:
		return p, v.wrong("needs a role for everyone, for example role: viewer, or role_header and roles")
	case p.UserHeader == p.RoleHeader:
		return p, v.wrong("needs two different headers for user_header and role_header")
	}

	return p, nil
}

// network reads a network, or an address. It refuses a network that matches every address.
func network(v value) (n netip.Prefix, err error) {
	text, err := v.text()
	if err != nil {
		return n, err
	}

	n, err = netip.ParsePrefix(text)
	if ip, single := netip.ParseAddr(text); single == nil {
		n, err = netip.PrefixFrom(ip, ip.BitLen()), nil
	}

	switch {
	case err != nil || n.Addr().Zone() != "" || n.Addr().Is4In6():
		return n, v.wrong("%q is not a network such as 10.0.0.0/8, or an address", clip.Text(text, 64))
	case n.Bits() == 0:
		return n, v.wrong("%q matches every address; name the proxy's own network", text)
	}

	return n.Masked(), nil
}

// headerName reads a header in its canonical form.
func headerName(v value) (string, error) {
	s, err := v.text()
	if err != nil {
		return "", err
	}

	if s == "" || strings.Trim(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", v.wrong("%q is not the name of a header such as X-Forwarded-User", clip.Text(s, 64))
	}

	switch name := textproto.CanonicalMIMEHeaderKey(s); name {
	case "Authorization", "Cookie", "Host", "Origin", "X-Forwarded-For", "X-Forwarded-Proto":
		return "", v.wrong("%s has another meaning; use another header", name)
	default:
		return name, nil
	}
}

// role reads a role that a user can have.
func role(v value) (access.Role, error) {
	known := func(r access.Role) bool { return access.CheckUserRole(r) == nil }
	return word(known, "not a role; use viewer, operator or admin")(v)
}

// IsBasePath reports whether s can be a base path; the empty one can.
func IsBasePath(s string) bool {
	if s == "" {
		return true
	}

	if s[0] != '/' || len(s) > 200 {
		return false
	}

	for part := range strings.SplitSeq(s[1:], "/") {
		if part == "" || part == "." || part == ".." ||
			strings.Trim(strings.ToLower(part), "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return false
		}
	}

	return true
}

const (
	day          = 24 * time.Hour
	defaultTrash = 7 * day // of a job that a person discarded

	maxAttempts = 10
	maxSecret   = 4 << 10
)

// defaultAges are how long jobs are kept when the file says nothing. Dead letters
// follow the Open Job Spec.
func defaultAges() retention.Ages {
	return retention.Ages{
		retention.Completed: 7 * day, retention.Cancelled: 30 * day, retention.Discarded: 30 * day, retention.DeadLetters: 180 * day,
	}
}

// Webhook is where a queue forwards its dead letters.
type Webhook struct {
	URL    string
	Secret Secret // with which each request is signed
	webhook.Sending
}

// Secret is a text that no log and no error shows.
type Secret = httpclient.Secret

// Webhook is where a queue forwards its dead letters; ok is false when it keeps
// them.
func (c *Config) Webhook(queue string) (w Webhook, ok bool) {
	c = c.now()
	if w := c.queues[queue].webhook; w != nil {
		return *w, true
	}

	return Webhook{}, false
}

// Retention says how long jobs are kept after they ended.
func (c *Config) Retention() retention.Limits {
	c = c.now()
	return c.retention
}

// readRetention reads the section retention: how long jobs are kept after they
// ended, and how many dead letters.
func (c *Config) readRetention(v value) error {
	return v.fields(c.retentionFields(c.retention.Ages, "dead_letter.retention.age", "dead_letter.retention.count"))
}

// readDeadLetter reads the section dead_letter, where the retention of dead letters
// used to be written.
func (c *Config) readDeadLetter(v value) error {
	fields := c.retentionFields(c.retention.Ages, "retention.dead_letters", "retention.max_dead_letters")
	return v.fields(map[string]func(value) error{"retention": func(v value) error {
		return v.fields(map[string]func(value) error{"age": fields["dead_letters"], "count": fields["max_dead_letters"]})
	}})
}

// retentionFields read what holds for all jobs. The places of dead letters are
// where else their bounds could be written.
func (c *Config) retentionFields(ages retention.Ages, otherAge, otherCount string) map[string]func(value) error {
	fields := ageFields(ages)
	for name, read := range fields {
		fields[name] = func(v value) error {
			c.retention.Said[retention.Kind(name)] = true
			return read(v)
		}
	}

	fields["dead_letters"] = c.once(otherAge, fields["dead_letters"])
	fields["max_dead_letters"] = c.once(otherCount, into(&c.retention.Count, func(v value) (int64, error) {
		n, err := v.integer()
		if err == nil && n < 1 {
			err = v.wrong("%d is less than 1; leave the field out to keep any number of dead letters", n)
		}

		return int64(n), err
	}))

	return fields
}

// once makes a reader that refuses what was written elsewhere too.
func (c *Config) once(elsewhere string, read func(value) error) func(value) error {
	return func(v value) error {
		if _, ok := c.file.lines[elsewhere]; ok {
			return v.wrong("is also set as %s; remove one of them", elsewhere)
		}
		return read(v)
	}
}

// ageFields read how long jobs are kept, by how they ended.
func ageFields(ages retention.Ages) map[string]func(value) error {
	fields := map[string]func(value) error{}
	for _, kind := range retention.WithAge() {
		fields[string(kind)] = func(v value) (err error) {
			ages[kind], err = ageOrNone(v)
			return err
		}
	}

	return fields
}

// readAges reads how long the jobs of one queue or type are kept.
func readAges(v value) (retention.Ages, error) {
	ages := retention.Ages{}
	return ages, v.fields(ageFields(ages))
}

// readTrash reads the section trash: how long discarded jobs can be restored.
func (c *Config) readTrash(v value) error {
	return v.fields(map[string]func(value) error{"age": into(&c.retention.Trash, age)})
}

// readDeadLetter reads what one queue does with its dead letters: keep them,
// forward them, or have none.
func (q *queue) readDeadLetter(v value) error {
	err := v.fields(map[string]func(value) error{
		"enabled": optional(&q.deadLetters, value.boolean),
		"webhook": optional(&q.webhook, readWebhook),
	})
	if err == nil && q.webhook != nil && q.deadLetters != nil && !*q.deadLetters {
		err = v.wrong("is not enabled, so nothing can be forwarded; remove enabled or webhook")
	}

	return err
}

// readWebhook reads where dead letters are forwarded. What is wrong with the
// numbers is said at the field that was written last, because defaults stand
// nowhere in the file.
func readWebhook(v value) (w Webhook, err error) {
	w = Webhook{Sending: webhook.DefaultSending()}
	if err := v.mapping(); err != nil {
		return w, err
	}

	var secrets []Secret
	asks := v // for more than fits
	tries := func(read func(value) error) func(value) error {
		return func(v value) error {
			asks = v
			return read(v)
		}
	}
	fields := secretFields(&secrets)
	fields["url"] = into(&w.URL, webhookURL)
	fields["timeout"] = tries(into(&w.Timeout, positive))

	fields["attempts"] = tries(into(&w.Attempts, attempts))
	err = v.fields(fields)
	switch {
	case err != nil:
		return w, err
	case w.URL == "":
		return w, v.wrong("needs a url, for example https://example.org/dead-letters")
	case len(secrets) != 1:
		return w, v.wrong("needs exactly one of secret, secret_env and secret_file")
	case !w.Fits():
		return w, asks.wrong("%d attempts of %v each and the pauses between them, up to %v, take longer than the %v "+
			"allowed for a dead letter; lower timeout or attempts",
			w.Attempts, w.Timeout, w.Pauses(), webhook.Deadline)
	}

	w.Secret = secrets[0]

	return w, nil
}

// secretFields read the three ways in which a secret can be written.
func secretFields(all *[]Secret) map[string]func(value) error {
	secret := func(read func(value) (string, error)) func(value) error {
		return func(v value) error {
			text, err := read(v)
			if err == nil && strings.TrimSpace(text) == "" {
				err = v.wrong("the secret is empty or blank")
			}

			*all = append(*all, httpclient.NewSecret(text))

			return err
		}
	}

	return map[string]func(value) error{
		"secret": secret(value.hidden), "secret_env": secret(secretEnv), "secret_file": secret(secretFile),
	}
}

// webhookURL never repeats what was written: there may be credentials in it.
func webhookURL(v value) (string, error) {
	s, err := v.hidden()
	if err != nil {
		return "", err
	}

	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return "", v.wrong("is not an address such as https://example.org/dead-letters")
	}

	return s, nil
}

// attempts reads how many requests are made for one dead letter.
func attempts(v value) (int, error) { return v.upTo(maxAttempts, "requests") }

// secretEnv reads a secret from the environment, by the name of a variable.
func secretEnv(v value) (string, error) {
	name, err := v.text()
	if err != nil {
		return "", err
	}

	text := os.Getenv(name)
	if text == "" {
		err = v.unset(name)
	}

	return text, err
}

// secretFile reads a file without the line break at its end.
func secretFile(v value) (string, error) {
	name, err := v.text()
	if err != nil {
		return "", err
	}

	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxSecret {
		return "", v.missing("%q is not a readable file of at most %d bytes", clip.Text(name, 200), maxSecret)
	}

	data, err := os.ReadFile(name)
	if err != nil {
		return "", v.missing("%v", err)
	}

	return string(bytes.TrimRight(data, "\r\n")), nil
}

// age reads how long something is kept. Retention looks once a minute.
func age(v value) (time.Duration, error) {
	d, err := v.longerThanZero("30d")
	if err == nil && d < time.Minute {
		err = v.wrong("%v is shorter than a minute", d)
	}

	return d, err
}

// ageOrNone is age, where 0 keeps forever.
func ageOrNone(v value) (time.Duration, error) {
	switch v.sign() {
	case 0:
		return 0, nil
	case -1:
		return 0, v.wrong("must be positive, or 0 to keep jobs forever")
	}

	return age(v)
}
