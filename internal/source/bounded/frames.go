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
			if f.left = size; size > 0 && f.peek > 0 {
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
	message := int64(0) // bytes of the message of which this packet is a part
	return &frames{
		head: 4, peek: 9,
		size: func(head []byte) (int64, error) {
			n := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16
			if message += n; message > MaxMessage {
				return 0, l.exceeded("it sent a message of more than %s", source.Size(MaxMessage))
			}
			if n < fullPacket {
				message = 0
			}
			return n, nil
		},
		look: func(head, first []byte) error {
			if head[3] != 1 || len(first) == 0 {
				return nil
			}
			if n := columnsIn(first); n > maxColumns {
				return l.exceeded("it announced %d columns, and the limit is %d", n, maxColumns)
			}
			return nil
		},
	}
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
	default: // one byte: a small number, success, an error, or a file that it wants
		return 0
	}
	copy(number[:length], first[1:])
	return binary.LittleEndian.Uint64(number[:])
}
