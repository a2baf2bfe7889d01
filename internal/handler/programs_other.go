//go:build !linux

package handler

import "syscall"

// attributes give a program a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// seesMarks reports whether the environments of processes can be read.
func seesMarks() bool { return false }

// marked lists the processes whose environment holds a mark.
func marked(string) ([]leftover, error) { return nil, nil }
