#include "sim/past/past_file.h"

#include <zlib.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/pack_model.h"
#include "state/records_fields.h"

namespace muster::sim {

template <typename V>
void Fields(V& v, Truth& t) {
  v("started_ms", t.started_ms)("ended_ms", t.ended_ms)("ran_ms", t.ran_ms)(
      "gpu_milli", t.gpu_milli)("pauses", t.pauses);
}
// Whom a job follows is found anew.
template <typename V>
void Fields(V& v, PastJob& j) {
  v("id", j.id)("spec", j.spec)("roles", j.roles)("user", j.user)("array", j.array)(
      "submitted_ms", j.submitted_ms)("work", j.work)("checkpoints", j.checkpoints)(
      "tells", j.tells)("regroups", j.regroups)("counted", j.counted)("speed", j.speed)(
      "expected_ms", j.expected_ms)("truth", j.truth)("pause_ms", j.pause_ms);
}
template <typename V>
void Fields(V& v, Past& p) {
  v("from_ms", p.from_ms)("to_ms", p.to_ms)("nodes", p.nodes)("queues", p.queues)(
      "topologies", p.topologies)("jobs", p.jobs)("left_out", p.left_out)(
      "still_there", p.still_there)("recorded", p.recorded);
}
template <typename V>
void Fields(V& v, PastFile& f) {
  v("past", f.past)("policy", f.policy);
}

namespace {

constexpr std::string_view kName = "muster past ";
constexpr std::string_view kMagic = "muster past 1\n";
constexpr std::size_t kMostNodes = 100'000;
constexpr std::size_t kMostGpus = 64;
constexpr std::size_t kMostJobs = 1'000'000;
constexpr std::int64_t kMostWorkers = 100'000;
constexpr std::int64_t kMostMs = 100'000'000'000'000;  // three thousand years
constexpr std::int64_t kMostWork = kMostMs * 10'000;   // a thousand workers for three hundred

std::uint64_t SumOf(std::string_view bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

bool Sound(const model::Job& spec) {
  if (spec.groups.empty() || spec.roles.empty() || spec.groups[0].parent != -1) return false;
  for (std::size_t i = 1; i < spec.groups.size(); ++i) {
    const auto parent = spec.groups[i].parent;
    if (parent < 0 || static_cast<std::size_t>(parent) >= i) return false;
  }
  std::int64_t workers = 0;
  for (const auto& role : spec.roles) {
    const auto& gpu = role.request.gpu;
    if (role.group < 0 || static_cast<std::size_t>(role.group) >= spec.groups.size()) return false;
    workers += role.count;
    if (role.count < 1 || workers > kMostWorkers) return false;
    if (gpu.devices < 0 || gpu.devices > static_cast<std::int64_t>(kMostGpus)) return false;
    if (gpu.share_milli < 0 || gpu.share_milli > kMilli || gpu.memory_bytes < 0) return false;
    if (role.request.cpu_milli < 0 || role.request.memory_bytes < 0) return false;
  }
  const auto& array = spec.array;
  return !array || (array->first >= 0 && array->last >= array->first &&
                    array->last - array->first < static_cast<std::int64_t>(kMostJobs));
}

bool Sound(const PastJob& job) {
  const auto moment = [](std::int64_t ms) { return ms >= 0 && ms < kMostMs; };
  if (job.spec == nullptr || !Sound(*job.spec) || job.id == 0) return false;
  if (job.work < 1 || job.work > kMostWork) return false;
  if (job.array > job.id || (job.array != 0 && !job.spec->array)) return false;
  if (job.pause_ms < -1 || job.pause_ms > kMostMs) return false;
  const auto roles = static_cast<int>(job.spec->roles.size());
  return moment(job.submitted_ms) && moment(job.expected_ms.value_or(0)) &&
         moment(job.spec->checkpoint.grace_ms) && moment(job.spec->checkpoint.every_ms) &&
         moment(job.spec->checkpoint.restart_cost_ms) && moment(job.spec->preemption_delay_ms) &&
         std::ranges::all_of(job.roles, [&](int role) { return role >= 0 && role < roles; });
}

bool Sound(const Past& past) {
  if (past.nodes.size() > kMostNodes || past.jobs.size() > kMostJobs) return false;
  std::set<std::string_view> names;
  for (const auto& node : past.nodes) {
    if (node.gpus.size() > kMostGpus || !names.insert(node.name).second) return false;
  }
  // They were sorted when they were saved, and no number is there twice.
  for (std::size_t i = 1; i < past.jobs.size(); ++i) {
    if (past.jobs[i].id <= past.jobs[i - 1].id) return false;
  }
  return past.from_ms >= 0 && past.to_ms < kMostMs &&
         std::ranges::all_of(past.jobs, [](const PastJob& job) { return Sound(job); });
}

}  // namespace

std::string EncodePast(PastFile file) {
  for (auto& job : file.past.jobs) {
    auto bare = std::make_shared<model::Job>(*job.spec);
    bare->command.clear();
    bare->env.clear();
    bare->workdir.clear();
    job.spec = std::move(bare);
  }
  const auto body = model::Pack(file);
  model::Packer sum;
  sum.Put(SumOf(body));
  return std::string(kMagic) + sum.out + body;
}

Result<PastFile> DecodePast(std::string_view bytes) {
  if (bytes.starts_with(kName) && !bytes.starts_with(kMagic)) {
    return Fail(ErrorCode::kInvalid, "this past is of another version of Muster",
                "read it with the version that saved it, or with a newer one");
  }
  if (!bytes.starts_with(kMagic)) {
    return Fail(ErrorCode::kInvalid, "this is no past", "`muster snapshot past FILE` saves one");
  }
  bytes.remove_prefix(kMagic.size());
  std::uint64_t sum = 0;
  model::Unpacker head(bytes);
  head.Get(sum);
  model::Packer again;
  again.Put(sum);
  PastFile file;
  if (head.bad() || SumOf(bytes.substr(again.out.size())) != sum) {
    return Fail(ErrorCode::kInvalid, "the past is cut off or damaged", "copy or save it again");
  }
  model::Unpacker in(bytes.substr(again.out.size()));
  Fields(in, file);
  if (in.bad() || !Sound(file.past)) {
    return Fail(ErrorCode::kInvalid, "the past holds what no past can hold",
                "it was not saved by `muster snapshot past`");
  }
  Finish(file.past);
  return file;
}

}  // namespace muster::sim
