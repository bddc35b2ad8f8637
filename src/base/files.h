// Files: reading a whole file, with an error that says what was wrong with it; what to say where
// one cannot be written; and folders that outlive a crash of the machine.
//
// A path that does not exist, may not be read or is a folder are three different errors, because
// three different people repair them. A file is read up to a bound and one byte more, so that the
// reader sees that it is too large without holding all of it.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

#include "base/result.h"

namespace muster {

inline constexpr std::size_t kLargestFile = std::size_t{256} << 20;

std::string ReadStream(std::istream& in, std::size_t most = kLargestFile);
Result<std::string> ReadFile(const std::string& path, std::size_t most = kLargestFile);

// The error for a path that could not be read, or written, because of this errno.
Error PathError(const std::string& path, int reason);
Error WriteError(const std::string& path, int reason);

// What was created, renamed or linked in the folder outlives a crash of the machine. The errno of
// what failed, or 0; file systems that cannot do it for folders do it without being asked.
int SyncFolder(const std::string& folder);
// Makes the folder and those above it that are missing, each so that it outlives a crash. As above.
int MakeFolders(const std::string& folder);

}  // namespace muster
