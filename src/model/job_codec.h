// The job file: reading it into a Job and writing a Job back.
//
// The file says `count: 2..8` on a role; the model keeps the minimum on the group, so the root and
// the groups of single roles are made here and need not be written. The root is always called
// `root`. A Job that was read is complete: defaults that depend on other keys (priority by kind,
// preemptible by priority) are settled. Reading back what was written gives an equal Job.
// docs/files.md is the reference of the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/document.h"
#include "model/document_writer.h"
#include "model/job.h"
#include "model/problems.h"

namespace muster::model {

inline constexpr std::string_view kRootGroup = "root";
inline constexpr std::string_view kOnlyRole = "worker";  // the role of the short form

// Bounds of one job; they keep its sums inside 64 bits.
inline constexpr std::int64_t kMostWorkers = 100'000;
inline constexpr std::int64_t kMostGpusPerWorker = 64;
inline constexpr std::int64_t kMostMemoryPerWorker = std::int64_t{64} << 40;
inline constexpr std::int64_t kMostArrayTasks = 1'000'000;
inline constexpr std::int64_t kMostPriority = 1'000'000;

// The Job is usable only when no error was added.
Job JobFromNode(const DocNode& node, Problems& problems);
DocNode JobToNode(const Job& job);

// "high" or "75"; none: it is no priority.
std::optional<std::int64_t> ParsePriority(std::string_view text);

Result<Job> DecodeJob(std::string_view text);
std::string EncodeJob(const Job& job, TextFormat format);

}  // namespace muster::model
