#include "api/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/listing.h"
#include "api/record_list.h"
#include "control/view_parts.h"
#include "control/views.h"
#include "model/fields.h"
#include "model/job_codec.h"
#include "model/problems.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::api {

using model::JobNumber;
using state::JobRecord;

namespace {

tl::unexpected<Error> IsArray(const state::ArrayRecord& array) {
  const auto& spec = *array.spec;
  return Fail(ErrorCode::kInvalid,
              fmt::format("job {} is an array of {} tasks, and this is about one of them", array.id,
                          array.tasks),
              fmt::format("name the task: {}[{}], or its number: {}", spec.name, spec.array->first,
                          array.id + 1));
}

}  // namespace

Controller::Search SearchOf(const Access& access) { return {access.caller().user, &access}; }

Result<void> HasWorker(const JobRecord& job, std::uint32_t worker) {
  std::size_t workers = job.workers.size();
  if (workers == 0) {
    for (const auto& role : job.spec->roles) workers += static_cast<std::size_t>(role.count);
  }
  if (worker < workers) return {};
  return Fail(ErrorCode::kNotFound,
              "job " + std::to_string(job.id) + " has no worker " + std::to_string(worker),
              "it has " + std::to_string(workers) + ", numbered from 0");
}

std::string LivingOne(Controller& control, const Access& access, const std::string& word) {
  const auto id = control.Resolve(word, SearchOf(access));
  if (!id || std::to_string(*id) == word || word.starts_with('@')) return word;
  const auto* latest = control.state().Find(*id);
  if (latest == nullptr || !latest->ending || latest->array != 0) return word;
  JobNumber living = 0;
  for (const auto other : control.state().Named(latest->spec->name)) {
    const auto* job = control.state().Find(other);
    if (job == nullptr || job->ending || job->user != access.caller().user) continue;
    if (living != 0) return word;
    living = other;
  }
  return living == 0 ? word : std::to_string(living);
}

Result<JobRecord> RecordOf(Controller& control, const Access& access, const std::string& word) {
  auto id = control.Resolve(word, SearchOf(access));
  if (!id) return tl::unexpected(id.error());
  if (const auto* array = control.state().FindArray(*id)) return IsArray(*array);
  if (const auto* job = control.state().Find(*id)) {
    return *job;  // Resolve() has looked whether it may be seen
  }
  state::HistoryQuery query;
  query.job = *id;
  auto rows = control.store().History(query);
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) return tl::unexpected(control::NoJob(word));
  auto job = state::DecodeJobRecord(rows->front().body);
  if (!job) return job;
  if (!access.MaySee(*job)) return tl::unexpected(control::NoJob(word));
  return job;
}

void GetJob(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto id = control.Resolve(call.Path("job"), SearchOf(access));
    if (!id) return tl::unexpected(id.error());
    const auto fields = call.Text("fields");
    if (auto known = CheckFields(call.operation(), fields); !known) {
      return tl::unexpected(known.error());
    }
    const auto shown = [&fields](DocNode node) {
      return fields.empty() ? std::move(node) : Pick(node, fields);
    };
    if (const auto* array = control.state().FindArray(*id)) {
      return Answer(shown(control::ArrayView(control.state(), access, *array, true)),
                    TagOf(array->revision));
    }
    auto job = RecordOf(control, access, std::to_string(*id));
    if (!job) return tl::unexpected(job.error());
    return Answer(shown(control::JobView(control, access, *job, true)), TagOf(job->revision));
  });
}

std::string TaskToExplain(Controller& control, const Access& access, const std::string& word) {
  const auto id = control.Resolve(word, SearchOf(access));
  const auto* array = id ? control.state().FindArray(*id) : nullptr;
  if (array == nullptr) return word;
  const auto& jobs = control.state().jobs();
  const auto end = jobs.upper_bound(array->id + static_cast<JobNumber>(array->tasks));
  std::string lives;
  for (auto task = jobs.upper_bound(array->id); task != end; ++task) {
    if (task->second.ending) continue;
    if (!task->second.Holds()) return std::to_string(task->first);
    if (lives.empty()) lives = std::to_string(task->first);
  }
  return lives.empty() ? word : lives;
}

void ExplainJob(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    const auto id = control.Resolve(call.Path("job"), SearchOf(access));
    if (!id) return tl::unexpected(id.error());
    const auto* array = control.state().FindArray(*id);
    if (array != nullptr && array->Ended()) return control::WhyView(control.state(), *array);
    auto job = RecordOf(control, access, TaskToExplain(control, access, std::to_string(*id)));
    if (!job) return tl::unexpected(job.error());
    auto node = control::WhyView(control, access, *job);
    if (array != nullptr) control::PutArray(control.state(), *array, node);
    return node;
  });
}

void ListWorkers(Desk& desk, const Call& call) {
  desk.List(call, [call](Controller& control, const Access& access) -> Result<Items> {
    auto id = control.Resolve(call.Path("job"), SearchOf(access));
    if (!id) return tl::unexpected(id.error());
    const auto* array = control.state().FindArray(*id);
    if (array == nullptr) {
      auto job = RecordOf(control, access, std::to_string(*id));
      if (!job) return tl::unexpected(job.error());
      return Items(control::WorkersView(control, access, *job).children);
    }
    std::vector<DocNode> all;
    const auto& jobs = control.state().jobs();
    const auto end = jobs.upper_bound(array->id + static_cast<JobNumber>(array->tasks));
    for (auto task = jobs.upper_bound(array->id); task != end; ++task) {
      auto workers = control::WorkersView(control, access, task->second);
      std::move(workers.children.begin(), workers.children.end(), std::back_inserter(all));
    }
    return Items(std::move(all));
  });
}

void ListArrays(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access& access) {
    std::vector<std::string> ids;
    std::vector<const state::ArrayRecord*> arrays;
    for (const auto& [id, array] : control.state().arrays()) {
      if (!access.Sees(array.user, array.spec->queue)) continue;
      ids.push_back(std::to_string(id));
      arrays.push_back(&array);
    }
    return Items(std::move(ids), [&control, access, arrays = std::move(arrays)](std::size_t at) {
      return control::ArrayView(control.state(), access, *arrays[at], false);
    });
  });
}

namespace {

// What happened to the job or the array, as `view` shows it.
void ListRecords(Desk& desk, const Call& call, const RecordView& view) {
  ListRecords(desk, call,
              [call, view](Controller& control, const Access& access) -> Result<RecordsOf> {
                auto id = control.Resolve(call.Path("job"), SearchOf(access));
                if (!id) return tl::unexpected(id.error());
                if (control.state().FindArray(*id) == nullptr) {
                  auto job = RecordOf(control, access, std::to_string(*id));
                  if (!job) return tl::unexpected(job.error());
                }
                return RecordsOf{*id, view};
              });
}

}  // namespace

void ListJobEvents(Desk& desk, const Call& call) { ListRecords(desk, call, control::RecordView); }

void ListJobDecisions(Desk& desk, const Call& call) {
  ListRecords(desk, call, control::DecisionView);
}

void ListCheckpoints(Desk& desk, const Call& call) {
  ListRecords(desk, call, control::CheckpointView);
}

}  // namespace muster::api
