#include "state/job_order.h"

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace muster::state {
namespace {

// A tree is made from what is sorted in one pass.
template <typename Set, typename Of>
Set Sorted(const std::map<JobNumber, JobRecord>& jobs, const Of& of) {
  std::vector<typename Set::value_type> all;
  all.reserve(jobs.size());
  for (const auto& [id, job] : jobs) all.emplace_back(of(job), id);
  std::sort(all.begin(), all.end());
  return Set(all.begin(), all.end());
}

std::string_view NameOf(const JobRecord& job) { return job.spec->name; }
std::string_view UserOf(const JobRecord& job) { return job.user; }
std::string_view QueueOf(const JobRecord& job) { return job.spec->queue; }
std::int64_t PriorityOf(const JobRecord& job) { return job.spec->priority; }
std::int64_t GpusOf(const JobRecord& job) { return GpuMilli(*job.spec); }

}  // namespace

std::int64_t GpuMilli(const model::Job& spec) {
  std::int64_t milli = 0;
  for (const auto& role : spec.roles) {
    const auto& gpu = role.request.gpu;
    const auto each = gpu.kind == model::GpuKind::kNone    ? 0
                      : gpu.kind == model::GpuKind::kShare ? gpu.share_milli * gpu.devices
                                                           : kMilli * gpu.devices;
    milli += each * role.count;
  }
  return milli;
}

JobOrder::JobOrder(const std::map<JobNumber, JobRecord>& jobs)
    : by_name_(Sorted<Texts>(jobs, NameOf)),
      by_user_(Sorted<Texts>(jobs, UserOf)),
      by_queue_(Sorted<Texts>(jobs, QueueOf)),
      by_priority_(Sorted<Numbers>(jobs, PriorityOf)),
      by_gpus_(Sorted<Numbers>(jobs, GpusOf)) {}

void JobOrder::Add(const JobRecord& job) {
  by_name_.emplace(NameOf(job), job.id);
  by_user_.emplace(UserOf(job), job.id);
  by_queue_.emplace(QueueOf(job), job.id);
  by_priority_.emplace(PriorityOf(job), job.id);
  by_gpus_.emplace(GpusOf(job), job.id);
}

void JobOrder::Remove(const JobRecord& job) {
  by_name_.erase({NameOf(job), job.id});
  by_user_.erase({UserOf(job), job.id});
  by_queue_.erase({QueueOf(job), job.id});
  by_priority_.erase({PriorityOf(job), job.id});
  by_gpus_.erase({GpusOf(job), job.id});
}

JobOrder::Value JobOrder::ValueOf(SortBy by, const JobRecord& job) {
  switch (by) {
    case SortBy::kNumber:
      return static_cast<std::int64_t>(job.id);
    case SortBy::kName:
      return std::string(NameOf(job));
    case SortBy::kUser:
      return std::string(UserOf(job));
    case SortBy::kQueue:
      return std::string(QueueOf(job));
    case SortBy::kPriority:
      return PriorityOf(job);
    case SortBy::kGpus:
      return GpusOf(job);
  }
  return {};
}

}  // namespace muster::state
