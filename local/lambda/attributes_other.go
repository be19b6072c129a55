//go:build !linux

package lambda

import "syscall"

// attributes are the system's defaults.
func attributes() *syscall.SysProcAttr { return nil }
