// LogWriter: one output stream of a worker, in files that never outgrow their bound.
//
// <path> is written, <path>.1 is the one before, and so on; the oldest is dropped. A file ends at a
// line's end where there is one. A disk that is full costs output, never the worker: bytes that
// cannot be written are counted and dropped, and when writing works again one line says how many.
// The file is made with the first byte: most short workers say nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "shim/handle.h"

namespace muster::shim {

struct LogFile {
  std::string path;
  std::int64_t most_bytes = 0;  // of one file
  int files = 1;
  uid_t owner = static_cast<uid_t>(-1);  // -1: as it comes
  gid_t group = static_cast<gid_t>(-1);
};

class LogWriter {
 public:
  explicit LogWriter(LogFile file) : file_(std::move(file)) {}

  void Write(std::string_view bytes);
  void Close();  // says what was lost since the last write that worked
  std::int64_t dropped() const { return dropped_; }

 private:
  bool Open();
  bool Rotate();
  bool Recover(std::string_view bytes);  // the line about the loss, and `bytes`
  std::size_t Append(std::string_view bytes);
  void Lose(std::size_t bytes);

  LogFile file_;
  Handle handle_;
  std::int64_t size_ = 0;
  std::int64_t dropped_ = 0;
  std::int64_t unsaid_ = 0;  // of those dropped, what no line in the log tells yet
  int reason_ = 0;
  bool mid_line_ = false;
};

}  // namespace muster::shim
