// MarkFile: how far the journal was written, kept outside of it.
//
// SQLite drops a damaged end of its log without a word, and a database can be put back from an old
// copy; the journal cannot tell by itself that its end is missing. The mark is written after each
// commit and never ahead of it, without waiting for the disk: after a power failure it may be
// behind, which says nothing, but a journal that is behind its mark has lost something. It also
// remembers the next job's number, because a number is never given out twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "model/event.h"

namespace muster::state {

struct Mark {
  std::uint64_t revision = 0;
  model::JobNumber next_job = 0;
};

class MarkFile {
 public:
  explicit MarkFile(std::string path) : path_(std::move(path)) {}
  ~MarkFile();
  MarkFile(const MarkFile&) = delete;
  MarkFile& operator=(const MarkFile&) = delete;

  std::optional<Mark> Read() const;  // none: there is none that can be trusted
  void Write(const Mark& mark);      // one that fails leaves the mark behind, which says nothing

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace muster::state
