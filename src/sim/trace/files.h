// TraceFiles: where the files of a trace are read from.
//
// Any path, as a person at a shell wants it; or names within one folder, for whoever reads on
// behalf of others. There is no way out of that folder: a name has no `..`, and no link is followed
// below it, whenever it was made. Only plain files are read, unpacked where they are gzipped, and
// only up to so many bytes, for a small packed file may hold anything.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::sim {

class TraceFiles {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  static constexpr std::size_t kMostBytesWithin = std::size_t{64} << 20;

  TraceFiles() = default;
  static TraceFiles Within(std::string folder);

  Result<std::string> Read(const std::string& path) const;
  // The path with all folders that it may have above it.
  std::string Whole(const std::string& path) const;
  // That it could be read, a file or a folder.
  Result<void> Check(const std::string& path) const;
  // What is in a folder, in the order of the names.
  Result<std::vector<std::string>> Names(const std::string& folder) const;

 private:
  Result<int> Open(const std::string& path, int flags) const;

  std::string folder_;  // empty: any path
};

}  // namespace muster::sim
