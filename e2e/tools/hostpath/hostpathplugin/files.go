package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func newID() string { return uuid.NewString() }

// path is where a volume or snapshot of this id is kept.
func (d *driver) path(id string) string { return filepath.Join(d.dir, id) }

// make keeps a new volume, with the content of the volume or snapshot `from`, if that is one.
func (d *driver) make(v *volume, from string) error {
	path := d.path(v.ID)
	err := create(path, v)
	if err == nil && from != "" {
		err = copyContent(d.path(from), path, v.Block)
	}
	if err != nil {
		return internal(errors.Join(err, os.RemoveAll(path)))
	}
	v.Staged, v.Published = map[string]string{}, map[string]string{}
	d.Volumes[v.ID] = v
	return nil
}

func create(path string, v *volume) error {
	if v.Block {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return os.Truncate(path, v.Size)
	}
	if err := os.Mkdir(path, 0o777); err != nil {
		return err
	}
	// Whoever a pod runs as may write, whatever this process masks.
	return os.Chmod(path, 0o777)
}

// remove forgets a volume only once its content is gone.
func (d *driver) remove(v *volume) error {
	if v.Block {
		if err := detach(d.path(v.ID)); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(d.path(v.ID)); err != nil {
		return err
	}
	delete(d.Volumes, v.ID)
	return nil
}

func (d *driver) snapshot(v *volume, name string) (*snapshot, error) {
	s := &snapshot{ID: newID(), Name: name, Volume: v.ID, Size: v.Size, Created: time.Now(), Block: v.Block}
	path := d.path(s.ID)
	var err error
	if !v.Block {
		err = os.Mkdir(path, 0o777)
	}
	if err == nil {
		err = copyContent(d.path(v.ID), path, v.Block)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	d.Snapshots[s.ID] = s
	return s, nil
}

func (s *snapshot) message() *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId:     s.ID,
		SourceVolumeId: s.Volume,
		SizeBytes:      s.Size,
		CreationTime:   timestamppb.New(s.Created),
		ReadyToUse:     true,
	}
}

// copyContent keeps owners, modes and links. The file of a larger volume stays as large as it is.
func copyContent(from, to string, block bool) error {
	if block {
		return copyBlocks(from, to)
	}
	if said, err := exec.Command("cp", "-a", from+"/.", to+"/").CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, said)
	}
	return nil
}

// copyBlocks leaves out what is zero: nothing else was written to a new file, and so it takes no space.
func copyBlocks(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	block, zero := make([]byte, 1<<20), make([]byte, 1<<20)
	var offset int64
	for {
		n, err := io.ReadFull(source, block)
		if n > 0 && !bytes.Equal(block[:n], zero[:n]) {
			if _, err := target.WriteAt(block[:n], offset); err != nil {
				return err
			}
		}
		offset += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	// The last block may be zero.
	if is, err := target.Stat(); err != nil || is.Size() >= offset {
		return err
	}
	return target.Truncate(offset)
}

// mounted tells whether something is mounted at exactly this path.
func mounted(path string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true, nil
		}
	}
	return false, nil
}

// loopDevice names the device that shows the file, or "". The kernel knows the file by its path in another mount namespace,
// but ids are unique.
func loopDevice(file string) (string, error) {
	all, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", err
	}
	for _, backing := range all {
		name, err := os.ReadFile(backing)
		// A device may go while it is looked at.
		if err == nil && filepath.Base(strings.TrimSpace(string(name))) == filepath.Base(file) {
			return "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(backing))), nil
		}
	}
	return "", nil
}

// attach shows the file as a loop device, and names that.
func attach(path string) (string, error) {
	if device, err := loopDevice(path); device != "" || err != nil {
		return device, err
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = control.Close() }()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	// Others look for free devices at the same time.
	for range 20 {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return "", err
		}
		device := fmt.Sprintf("/dev/loop%d", number)
		err = onDevice(device, number, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_SET_FD, int(file.Fd())) })
		if err == nil {
			return device, nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return "", err
		}
	}
	return "", errors.New("no loop device is free")
}

// loopMajor is the kernel's number of loop devices.
const loopMajor = 7

// onDevice calls something on a loop device, whose node it makes where nobody else does.
func onDevice(device string, number int, call func(fd int) error) error {
	err := unix.Mknod(device, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, uint32(number))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return call(int(file.Fd()))
}

// onLoopOf calls something on the device that shows the file, if one does.
func onLoopOf(path string, call func(fd int) error) error {
	device, err := loopDevice(path)
	if device == "" || err != nil {
		return err
	}
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return call(int(file.Fd()))
}

func detach(path string) error {
	return onLoopOf(path, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0) })
}

// grow makes the file, and the device that shows it, as large as this.
func grow(path string, size int64) error {
	if err := os.Truncate(path, size); err != nil {
		return err
	}
	return onLoopOf(path, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_SET_CAPACITY, 0) })
}
