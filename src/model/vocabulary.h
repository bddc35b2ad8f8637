// Vocabulary: the words of the files, and which names are legal.
//
// One table per enumeration serves reading, writing and the "allowed" part of messages. A GPU type
// is told from any other countable resource by its first letter: types begin with a capital or a
// digit (or are called `virtual`), countables with a small letter. A queue file knows no cluster,
// and the quota of a type is counted in thousandths while that of a countable is counted in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/job.h"
#include "model/node.h"
#include "model/queue.h"

namespace muster::model {

inline constexpr std::array<std::string_view, 4> kJobKindNames = {"build", "train", "tune",
                                                                  "serve"};
inline constexpr std::array<std::string_view, 8> kFrameworkNames = {
    "none", "torch", "tensorflow", "horovod", "mpi", "deepspeed", "ray", "muster"};
inline constexpr std::array<std::string_view, 3> kAfterConditionNames = {"ok", "any", "failed"};
inline constexpr std::array<std::string_view, 4> kPoolDriverNames = {"local", "simulated",
                                                                     "kubernetes", "slurm"};
inline constexpr std::array<std::string_view, 2> kPoolRoleNames = {"primary", "burst"};
inline constexpr std::array<std::string_view, 4> kMemberRoleNames = {"viewer", "user",
                                                                     "queue-admin", "admin"};
inline constexpr std::array<std::string_view, 5> kPriorityNames = {"low", "normal", "high", "build",
                                                                   "critical"};
inline constexpr std::array<std::int64_t, 5> kPriorityValues = {25, 50, 75, 100, 125};
inline constexpr std::array<std::string_view, 13> kSignalNames = {
    "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT",  "SIGHUP", "SIGQUIT", "SIGCONT",
    "SIGALRM", "SIGPIPE", "SIGXCPU", "SIGTSTP", "SIGPWR", "SIGWINCH"};

inline std::string_view NameOf(JobKind kind) {
  return kJobKindNames[static_cast<std::size_t>(kind)];
}
inline std::string_view NameOf(Framework framework) {
  return kFrameworkNames[static_cast<std::size_t>(framework)];
}
inline std::string_view NameOf(AfterCondition condition) {
  return kAfterConditionNames[static_cast<std::size_t>(condition)];
}
inline std::string_view NameOf(PoolDriver driver) {
  return kPoolDriverNames[static_cast<std::size_t>(driver)];
}
inline std::string_view NameOf(PoolRole role) {
  return kPoolRoleNames[static_cast<std::size_t>(role)];
}

inline constexpr std::string_view kGpus = "gpus";
inline constexpr std::string_view kCpus = "cpus";
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kVirtualGpuType = "virtual";

// Letters, digits, `.`, `_` and `-`, a letter or digit first, at most 128: jobs, roles, groups,
// pools.
bool IsName(std::string_view text);
bool IsJobName(std::string_view text);  // and no number: those are the jobs' own
// Names joined by `/`, at most 16 levels and 253 characters.
bool IsQueuePath(std::string_view text);
// As a name, and `/` and `:` may stand inside, at most 253: labels and topology levels.
bool IsLabelName(std::string_view text);
// As in a shell: letters, digits and `_`, no digit first.
bool IsVariableName(std::string_view text);
bool IsGpuTypeName(std::string_view text);
bool IsCountableName(std::string_view text);
// The built-in resource that a slip such as `gpu`, `CPUs` or `mem` was meant to be, else empty. Not
// by nearness: `tpus` and `dpus` are countable things of their own.
std::string_view MeantResource(std::string_view text);

inline constexpr std::string_view kNameRule =
    "letters, digits, `.`, `_` and `-`, beginning with a letter or digit, at most 128";
inline constexpr std::string_view kJobNameRule =
    "letters, digits, `.`, `_` and `-`, beginning with a letter or digit, not digits only, at most "
    "128";

}  // namespace muster::model
