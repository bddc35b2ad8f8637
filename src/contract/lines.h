// Lines: what a worker and its shim say on <run_dir>/worker.sock, one JSON object a line.
//
// Speaking is voluntary: a worker that never connects is run by signals alone. The version is
// agreed once, by hello and welcome; after that both sides ignore fields they do not know, and a
// line of an unknown type is refused without ending the connection. docs/contract.md is the same
// for people who write workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace muster::contract {

inline constexpr std::size_t kLongestLine = std::size_t{64} << 10;  // of a worker, with its newline

struct Hello {
  int version = 0;
  int pid = 0;
  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Ready {
  friend bool operator==(const Ready&, const Ready&) = default;
};
struct Progress {
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> samples;
  std::map<std::string, double> numbers;
  friend bool operator==(const Progress&, const Progress&) = default;
};
struct Checkpointed {
  std::int64_t step = 0;
  std::string path;
  std::int64_t at_ms = 0;  // 0: now
  friend bool operator==(const Checkpointed&, const Checkpointed&) = default;
};
struct Resized {  // the gang works on with so many workers; one of them says it
  std::int64_t workers = 0;
  std::int64_t pause_ms = 0;  // in which nobody worked
  std::optional<std::int64_t> step;
  friend bool operator==(const Resized&, const Resized&) = default;
};
// The model that came out of the training, in a file that stays.
struct Kept {
  std::string path;
  std::string hash;                       // of its parameters, as the program counts it
  std::map<std::string, double> numbers;  // how good it is: test_loss, ...
  friend bool operator==(const Kept&, const Kept&) = default;
};
struct Leaving {
  std::string reason;
  friend bool operator==(const Leaving&, const Leaving&) = default;
};
using Said = std::variant<Hello, Ready, Progress, Checkpointed, Resized, Kept, Leaving>;

struct Welcome {
  int version = 0;
  std::string launch;
  int rank = 0;
  int world_size = 1;
  std::int64_t generation = 0;
  std::int64_t restart_count = 0;
  std::string checkpoint_dir;
  friend bool operator==(const Welcome&, const Welcome&) = default;
};
struct Member {
  int rank = 0;
  std::string host;
  std::optional<int> port;
  friend bool operator==(const Member&, const Member&) = default;
};
struct Resize {
  std::int64_t generation = 0;
  std::vector<Member> members;
  friend bool operator==(const Resize&, const Resize&) = default;
};
struct AskCheckpoint {
  std::int64_t deadline_ms = 0;  // since the Unix epoch
  friend bool operator==(const AskCheckpoint&, const AskCheckpoint&) = default;
};
struct Leave {
  std::int64_t grace_ms = 0;
  friend bool operator==(const Leave&, const Leave&) = default;
};
struct Stop {
  std::int64_t grace_ms = 0;
  friend bool operator==(const Stop&, const Stop&) = default;
};
struct Refused {  // the line just sent was not understood
  std::string message;
  friend bool operator==(const Refused&, const Refused&) = default;
};
using Told = std::variant<Welcome, Resize, AskCheckpoint, Leave, Stop, Refused>;

// With the newline at the end.
std::string Encode(const Said& said);
std::string Encode(const Told& told);

Result<Said> DecodeSaid(std::string_view line);
Result<Told> DecodeTold(std::string_view line);

}  // namespace muster::contract
