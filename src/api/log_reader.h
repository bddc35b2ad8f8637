// LogReader: the kept files of one log, oldest first, read as one sequence of bytes.
//
// A log is `path`, `path.1` before it and so on; its writer moves the names up by one when a file
// is full. The files are therefore told apart by what is behind a name, and held open from the
// moment they are seen: one that is dropped meanwhile can still be read. What nobody could hold on
// to is marked by a line where it is missing. Everything is bounded: names looked at, files held,
// bytes read by one call. The folder may be the worker's own, so only plain files are opened.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "net/sockets.h"

namespace muster::api {

class LogReader {
 public:
  static constexpr int kFilesOfLog = 4;  // what a shim keeps unless its order says otherwise

  explicit LogReader(std::string path) : path_(std::move(path)) {}

  // Takes up the files that have appeared since.
  void Look();
  // What is written from now on is not read.
  void Freeze();
  // Leaves out the files that were last written to before then.
  void SkipBefore(std::int64_t wall_ms);
  // Goes to where the last `lines` lines begin, a bounded way with each call; true: it is there.
  bool SeekTail(std::int64_t lines);
  // Where the next byte is to be read, in a form that another reader of the same log understands,
  // also after rotations: the file by what no other has, and the byte in it.
  std::string Place() const;
  // Goes there. Where that file is no longer kept, the first that is begins with the line that says
  // so. False: it is no place.
  bool SeekTo(std::string_view place);
  // The next bytes; none: all that is known of has been read.
  std::string Read(std::size_t most);

  std::size_t files() const { return files_.size(); }
  std::int64_t bytes() const;

 private:
  struct File {
    net::Fd handle{};
    dev_t device = 0;
    ino_t inode = 0;
    std::int64_t born_ns = 0;  // numbers of files come round again; 0: not known here
    std::int64_t at = 0;
    std::int64_t end = INT64_MAX;  // where it was frozen
    bool gap = false;              // something before it was not seen
  };

  std::vector<File> List() const;  // oldest first
  bool IsLatest(const std::string& path) const;
  static std::int64_t SizeOf(const File& file);

  std::string path_;
  std::deque<File> files_;
  // Where the search for the tail has come to.
  bool searching_ = false;
  std::size_t search_file_ = 0;
  std::int64_t search_at_ = 0;
  std::int64_t search_seen_ = 0;
  bool search_last_ = true;  // the very last byte ends a line, it does not begin one
};

}  // namespace muster::api
