// Spool: puts records where the daemon finds them, and keeps those that cannot be put yet.
//
// A record appears whole, by rename, or not at all. Records are written in the order start, report,
// checkpoint, exit, so that whoever sees the exit record has all others. Not synced to disk: what
// a crash of the machine takes, it takes together with the worker.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace muster::shim {

class Spool {
 public:
  enum class Kind : std::uint8_t { kStart, kReport, kCheckpoint, kExit };

  Spool(std::string folder, std::string launch);

  // Replaces a record of the same kind that still waits.
  void Put(Kind kind, std::string text);

  // Writes what waits; false when something had to be kept.
  bool Flush();
  bool waiting() const;

 private:
  bool Write(const std::string& ending, const std::string& text) const;

  std::string folder_;
  std::string launch_;
  std::array<std::optional<std::string>, 4> waiting_;
};

}  // namespace muster::shim
