package amqpsource

import "time"

func init() {
	maxLook = 10 * time.Minute // a look that takes long on a busy machine is no failure of a test
	maxBeats = 0               // what is missing has left: no connection of an earlier test is open
}
