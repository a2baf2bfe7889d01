package redact

import "strings"

// command is what a command line was seen to call.
type command struct {
	name string
	end  int // of its line
}

// option is the secret after an option of a command, at a word:
// curl -u ana:S, mysql -pS, sshpass -p S, docker login -p S, curl -b sid=S.
func (t *scanner) option(word span) span {
	s := t.s
	text := word.in(s)
	if text[0] != '-' {
		// A command, whose options are expected up to the end of its line.
		switch text {
		case "curl", "wget", "http", "https", "sshpass", "docker", "podman", "redis-cli", "mysql", "mysqldump", "mysqladmin", "mariadb":
			if word.to < len(s) && s[word.to] == ' ' {
				if word.to > t.command.end {
					t.command.end = line(s, word.to)
				}

				t.command.name = text
			}
		// docker login
		case "login":
			if word.from < t.command.end && (t.command.name == "docker" || t.command.name == "podman") {
				t.command.name = "docker login"
			}
		}

		return span{}
	}

	// -u ana:S, after any command.
	if text == "-u" || text == "--user" || text == "--proxy-user" || text == "-a" && t.command.name == "http" {
		return login(s, word.to)
	}

	if word.from >= t.command.end || word.len() < 2 || word.from > 0 && strings.IndexByte(" \t'\"", s[word.from-1]) < 0 {
		return span{}
	}

	// Other options mean different things to different commands: -p is a password for mysql.
	name := t.command.name
	flag := text[1]
	switch {
	// mysql -pS, sshpass -pS, curl -uana:S
	case (strings.HasPrefix(name, "m") || name == "sshpass") && flag == 'p' && word.to < len(s) && (word.len() > 2 || s[word.to] > ' '),
		name == "curl" && flag == 'u' && word.len() > 2:
		return span{word.from + 2, blankless(s, word.from).to}
	case name == "curl" && flag != '-' && s[word.to-1] == 'u': // several in one: -su
		return login(s, word.to)
	// sshpass -p S, docker login -p S, redis-cli -a S
	case text == "-p" && (name == "sshpass" || name == "docker login"), text == "-a" && name == "redis-cli":
		return argument(s, word.to)
	// curl -b sid=S, but not curl -b cookies.txt
	case text == "-b" && name == "curl":
		if at := argument(s, word.to); strings.Contains(at.in(s), "=") {
			return at
		}
	}

	return span{}
}

// argument is the next argument of a command line.
func argument(s string, i int) span {
	i = blanks(s, i)
	if i < len(s) && quoteAt(s, i).width() > 0 {
		return quotedValue(s, i)
	}

	return blankless(s, i)
}

// login is the next argument when it is a name and a password, not two numbers as
// of a user and a group.
func login(s string, i int) span {
	if i < len(s) && s[i] == '=' {
		i++
	}

	at := argument(s, i)

	name, password, ok := strings.Cut(at.in(s), ":")
	if !ok || strings.HasPrefix(password, "//") || strings.Trim(name+password, "0123456789") == "" {
		return span{}
	}

	return at
}

// inStatement is the secret in a statement of SQL, in which a word has no
// mark of a value behind it: IDENTIFIED BY 'S', PASSWORD 'S', and the values of an
// INSERT that has a column of a secret.
func (t *scanner) inStatement(word span) span {
	s := t.s
	k := blanks(s, word.to)
	switch text := word.in(s); {
	case k > word.to && k < len(s) && s[k] == '\'' && (text == "PASSWORD" || strings.EqualFold(text, "by") && identified(s, word.from)):
		return quotedValue(s, k)
	case word.from >= t.columns && isColumn(s, word.from, k) && t.names.hide(text):
		return t.values(word.to)
	}

	return span{}
}

// isColumn reports whether a word that begins at i and before k may be one of a list.
func isColumn(s string, i, k int) bool {
	return i > 0 && strings.IndexByte(" (,\"`[", s[i-1]) >= 0 && k < len(s) && strings.IndexByte(",)\"`]", s[k]) >= 0
}

// identified reports whether the words before i are those of IDENTIFIED BY.
func identified(s string, i int) bool {
	return strings.Contains(strings.ToLower(s[max(0, i-40):i]), "identified")
}

// values are the values of an INSERT among whose columns i is.
func (t *scanner) values(i int) span {
	s := t.s
	const most = 2 << 10 // of the columns

	near := s[i:min(i+most, len(s))]
	closed := strings.IndexAny(near, ")\n;")
	if closed < 0 {
		t.columns = i + len(near)
		return span{}
	}

	t.columns = i + closed

	rest := strings.TrimLeft(near[closed:], ") \t\r\n")
	if len(rest) < len("values") || !strings.EqualFold(rest[:len("values")], "values") {
		return span{}
	}

	from := i + len(near) - len(rest) + len("values")
	from = blanks(s, from)
	if from == len(s) || s[from] != '(' {
		return span{}
	}

	to := bracketed(s, from)
	for next := to; ; to = bracketed(s, next) { // further rows
		next = to + len(s[to:]) - len(strings.TrimLeft(s[to:], ", \t\r\n"))
		if next == to || next == len(s) || s[next] != '(' {
			return span{from, to}
		}
	}
}
