package bounded

import (
	"encoding/binary"

	"redrive/internal/source"
)

// maxFrame is how long a frame of AMQP may be. RabbitMQ sends 128 kB unless it is set
// otherwise.
const maxFrame = 4_000_000

// frames follows messages that begin with a head of a fixed length, which announces how
// many bytes come after it. Of those, the first few can be read as well.
type frames struct {
	head int                              // bytes
	peek int                              // bytes after it that check wants to see, if there are as many
	size func(head []byte) (int64, error) // bytes that come after the head
	look func(head, first []byte) error   // at a message, before more of it passes
	got  []byte                           // of the head and the first bytes
	left int64                            // bytes of the message that come after what was seen
	pass []byte                           // what passes
}

// Pass reads along. A head and what is looked at pass only as a whole.
func (f *frames) Pass(in []byte) ([]byte, error) {
	f.pass = f.pass[:0]
	for len(in) > 0 {
		// The rest of a frame that was looked at passes as it comes.
		if f.left > 0 && len(f.got) == 0 {
			n := min(int64(len(in)), f.left)
			f.pass, in, f.left = append(f.pass, in[:n]...), in[n:], f.left-n
			continue
		}

		// The head, and then the first bytes after it.
		want := f.head
		if len(f.got) >= f.head {
			want = f.head + int(min(int64(f.peek), f.left))
		}

		n := min(want-len(f.got), len(in))
		f.got, in = append(f.got, in[:n]...), in[n:]
		if len(f.got) < want {
			break
		}

		if want == f.head {
			size, err := f.size(f.got)
			if err != nil {
				return nil, err
			}

			// The first bytes after the head have to come before the frame is looked at.
			f.left = size
			if size > 0 && f.peek > 0 {
				continue
			}
		}

		if err := f.look(f.got[:f.head], f.got[f.head:]); err != nil {
			return nil, err
		}

		f.left -= int64(len(f.got) - f.head)
		f.pass, f.got = append(f.pass, f.got...), f.got[:0]
	}

	return f.pass, nil
}

// AMQP is the protocol of RabbitMQ: frames of a type, a channel, a size, the payload and an
// octet that ends it.
func AMQP(l *Line) Filter {
	const header = 2 // the type of a frame that announces how large the body of a message is

	return &frames{
		head: 7, peek: 12,
		size: func(head []byte) (int64, error) {
			n := binary.BigEndian.Uint32(head[3:])
			if n > maxFrame {
				return 0, l.exceeded("it announced a frame of %d bytes, and the limit is %s", n, source.Size(maxFrame))
			}

			return int64(n) + 1, nil
		},
		look: func(head, first []byte) error {
			if head[0] != header || len(first) < 12 {
				return nil
			}

			if n := binary.BigEndian.Uint64(first[4:]); n > MaxBody {
				return l.exceeded("it announced a message of %d bytes, and the limit is %s", n, source.Size(MaxBody))
			}

			return nil
		},
	}
}

// Postgres is the protocol of PostgreSQL, from its first message on: a type, a length that
// counts itself, and the rest.
func Postgres(l *Line) Filter {
	const length = 4

	return &frames{
		head: 1 + length,
		size: func(head []byte) (int64, error) {
			n := int64(int32(binary.BigEndian.Uint32(head[1:])))
			switch {
			case n < length:
				return 0, l.exceeded("it announced a message of %d bytes", n)
			case n > MaxMessage:
				return 0, l.exceeded("it announced a message of %d bytes, and the limit is %s", n, source.Size(MaxMessage))
			}

			return n - length, nil
		},
		look: func([]byte, []byte) error { return nil },
	}
}

// What a MySQL may answer.
const (
	fullPacket = 1<<24 - 1 // one after which the message goes on
	maxColumns = 4096      // of a table, in MySQL and MariaDB
)

// MySQL is the protocol of MySQL and MariaDB: packets of a length, a number and the
// payload. The first packet after a command has the number 1, and announces how many
// columns the answer has, unless it begins with a byte that says otherwise.
func MySQL(l *Line) Filter {
	p := &packets{line: l}
	p.frames = frames{head: 4, peek: 9, size: p.size, look: p.look}
	return p
}

// packets follows the packets of MySQL. Their numbers are bytes, which begin again in a long
// answer: the packet after row 255 can have the number 1, too, and begins with a value.
type packets struct {
	frames
	line *Line

	message int64 // bytes of the message of which this packet is a part
	full    bool  // the message goes on after this packet
	goes    bool  // this packet goes on with a message

	number      byte   // of the last packet
	rows        bool   // the rows of an answer are under way, or the definitions before them
	definitions uint64 // of columns that can still come: MariaDB does not repeat those that the driver knows
	defined     bool   // the packet between the definitions and the rows has passed
}

// size reads how many bytes a packet has.
func (p *packets) size(head []byte) (int64, error) {
	n := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16
	p.goes, p.full = p.full, n == fullPacket

	if !p.goes {
		p.message = 0
	}

	p.message += n
	if p.message > MaxMessage {
		return 0, p.line.exceeded("it sent a message of more than %s", source.Size(MaxMessage))
	}

	return n, nil
}

// look finds out whether a packet is the first one of an answer, and reads how many columns
// that announces.
func (p *packets) look(head, first []byte) error {
	next := head[3] == p.number+1
	p.number = head[3]
	if p.goes || len(first) == 0 {
		return nil
	}

	if !next { // whatever was under way, the driver does not take this packet for a part of it
		p.rows = false
	}

	switch {
	case p.rows && p.ends(first):
		p.rows = false
		return nil
	case p.rows && p.definitions == 0:
		return nil
	case p.rows:
		p.definitions--
	}

	// The first packet of an answer has the number 1.
	if head[3] != 1 {
		return nil
	}

	columns := columnsIn(first)
	if columns > maxColumns {
		return p.line.exceeded("it announced %d columns, and the limit is %d", columns, maxColumns)
	}

	if !p.rows {
		p.rows, p.definitions, p.defined = columns > 0, columns, false
	}

	return nil
}

// ends reports whether a packet ends the rows of an answer: an error does, and a packet that
// begins like a value of more than 16 MB and is shorter. One of five bytes ends the
// definitions first, where the server sends such packets at all.
func (p *packets) ends(first []byte) bool {
	const failure, end = 0xff, 0xfe
	switch {
	case first[0] == failure:
		return true
	case first[0] != end || p.full:
		return false
	case len(first) == 5 && !p.defined:
		p.defined = true
		return false
	}

	return true
}

// Asked is told that a command is sent. No driver sends one before it has read the answer to
// the last one, unless it has given that up: then it would take what it has not read of it
// for the answer to this one.
func (p *packets) Asked() error {
	if p.rows {
		return p.line.exceeded("it sent an answer that the driver could not read to its end")
	}
	return nil
}

// columnsIn is the number of columns that the first packet of an answer announces; 0 when
// it is another answer.
func columnsIn(first []byte) uint64 {
	var number [8]byte

	length := 0
	switch first[0] {
	case 0xfc:
		length = 2
	case 0xfd:
		length = 3
	case 0xfe:
		length = 8
	case 0xfb, 0xff: // a file that it wants, or an error
		return 0
	default: // success, or a small number
		return uint64(first[0])
	}

	copy(number[:length], first[1:])

	return binary.LittleEndian.Uint64(number[:])
}
