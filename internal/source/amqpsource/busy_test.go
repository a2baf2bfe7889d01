package amqpsource

import "time"

// A look that takes long on a busy machine is no failure of a test.
func init() { maxLook = 10 * time.Minute }
