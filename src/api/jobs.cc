#include "api/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/listing.h"
#include "api/record_list.h"
#include "api/tokens.h"
#include "control/view_parts.h"
#include "control/views.h"
#include "model/fields.h"
#include "model/job_codec.h"
#include "model/problems.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::api {

using model::JobNumber;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;
using state::JobRecord;

namespace {

tl::unexpected<Error> IsArray(const state::ArrayRecord& array) {
  const auto& spec = *array.spec;
  return Fail(
      ErrorCode::kInvalid, "job " + std::to_string(array.id) + " is an array",
      "name one of its tasks: " + spec.name + "[" + std::to_string(spec.array->first) + "]");
}

std::string ArrayText(const state::State& state, const state::ArrayRecord& array,
                      const std::string& asked) {
  DocNode node = MapNode();
  const auto active = state.ActiveTasks(array.id);
  Put(node, "tasks", NumberNode(array.tasks));
  Put(node, "active", NumberNode(active));
  Put(node, "ended", NumberNode(array.succeeded + array.failed + array.cancelled));
  if (!asked.empty()) Put(node, "asked", TextNode(asked));
  return model::WriteJson(node);
}

std::string QueueOf(const state::State& state, JobNumber id) {
  if (const auto* array = state.FindArray(id)) return array->spec->queue;
  const auto* job = state.Find(id);
  return job == nullptr ? "" : job->spec->queue;
}

// `asked` is what was asked for where it comes true only later, or one task after the other.
std::string SpecText(const state::State& state, JobNumber id, const std::string& asked = "") {
  if (const auto* array = state.FindArray(id)) return ArrayText(state, *array, asked);
  const auto* job = state.Find(id);
  if (job == nullptr) return "";
  DocNode node = MapNode();
  Put(node, "phase", TextNode(Name(PhaseOf(*job))));
  Put(node, "priority", NumberNode(job->spec->priority));
  std::int64_t most = 0, least = 0;
  for (const auto& role : job->spec->roles) most += role.count;
  for (const auto& group : job->spec->groups) least += group.parent < 0 ? group.minimum : 0;
  Put(node, "workers_min", NumberNode(least));
  Put(node, "workers_max", NumberNode(most));
  if (!asked.empty()) Put(node, "asked", TextNode(asked));
  return model::WriteJson(node);
}

Controller::Search SearchOf(const Access& access) { return {access.caller().user, &access}; }

// The number, when the caller may act on the job or the array. Names are for one's own: whoever
// mistypes one must not stop a stranger's job that happens to be called so.
Result<JobNumber> Actable(Controller& control, const Access& access, const std::string& word) {
  auto id = control.Resolve(word, SearchOf(access));
  if (!id) return id;
  const auto number = std::to_string(*id);
  JobRecord job;
  if (const auto* array = control.state().FindArray(*id)) {
    job.id = array->id;
    job.user = array->user;
    job.spec = array->spec;
  } else {
    auto found = RecordOf(control, access, number);
    if (!found) return tl::unexpected(found.error());
    job = std::move(*found);
  }
  if (auto may = access.MayAct(job); !may) return tl::unexpected(may.error());
  if (word == number) return id;
  if (job.user == access.caller().user) {
    std::string others;
    for (const auto other : control.state().Named(job.spec->name)) {
      const auto* same = control.state().Find(other);
      if (same == nullptr || same->ending || same->user != job.user || other == *id) continue;
      if (!others.empty()) others += ", ";
      others += std::to_string(other);
    }
    if (others.empty() || word == "@last" || word.find('[') != std::string::npos) return id;
    return Fail(
        ErrorCode::kConflict,
        fmt::format("several of your jobs are called {}: {}, {}", job.spec->name, others, number),
        "to change one of them give its number");
  }
  return Fail(ErrorCode::kConflict, "\"" + word + "\" is job " + number + " of " + job.user,
              "to change another's job give its number");
}

Changed ActedOn(Controller& control, JobNumber id, std::string before, bool dry_run,
                const std::string& asked = "") {
  DocNode node = MapNode();
  Put(node, "id", TextNode(std::to_string(id)));
  const auto* job = control.state().Find(id);
  const auto* array = control.state().FindArray(id);
  std::string queue;
  if (job != nullptr) {
    Put(node, "name", TextNode(job->name()));
    Put(node, "phase", TextNode(Name(PhaseOf(*job))));
    queue = job->spec->queue;
  } else if (array != nullptr) {
    Put(node, "name", TextNode(array->spec->name));
    queue = array->spec->queue;
  }
  if (dry_run) Put(node, "dry_run", model::BoolNode(true));
  return {std::move(node),
          {{"job " + std::to_string(id), queue, std::move(before),
            SpecText(control.state(), id, asked)}}};
}

Result<void> Do(Controller& control, JobNumber id, const Call& call, const control::By& by) {
  const auto& verb = call.operation().verb;
  if (verb == "cancel") return control.Cancel(id, by);
  if (verb == "suspend") return control.Suspend(id, by);
  if (verb == "resume" || verb == "release") return control.Resume(id, by);
  if (verb == "hold") return control.Hold(id, by);
  if (verb == "requeue") return control.Requeue(id, by);
  if (verb == "checkpoint") return control.AskCheckpoint(id, by);
  if (verb == "scale") {
    return control.Scale(id, static_cast<int>(call.Number("min", 0)),
                         static_cast<int>(call.Number("max", 0)), by);
  }
  if (verb == "priority") return control.SetPriority(id, call.Number("value", -1), by);
  return Fail(ErrorCode::kInternal, "nobody does \"" + verb + "\" to a job");
}

}  // namespace

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
    const auto shown = [&fields](DocNode node) {
      return fields.empty() ? std::move(node) : Pick(node, fields);
    };
    if (const auto* array = control.state().FindArray(*id)) {
      auto view = control::ArrayView(control.state(), *array);
      const auto tag = "\"" + HashOf(model::WriteJson(view)).substr(0, 16) + "\"";
      return Answer(shown(std::move(view)), tag);
    }
    auto job = RecordOf(control, access, std::to_string(*id));
    if (!job) return tl::unexpected(job.error());
    return Answer(shown(control::JobView(control, access, *job, true)), TagOf(job->revision));
  });
}

void ActOnJob(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    auto id = Actable(control, access, call.Path("job"));
    if (!id) return tl::unexpected(id.error());
    const auto* job = control.state().Find(*id);
    if (call.operation().verb == "priority") {
      auto may = access.MayPrioritize(QueueOf(control.state(), *id), call.Number("value", -1));
      if (!may) return tl::unexpected(may.error());
    }
    if (job != nullptr) {
      auto same = CheckMatch(call, TagOf(job->revision));
      if (!same) return tl::unexpected(same.error());
    }
    auto before = SpecText(control.state(), *id);
    const control::By by(access.caller().user, call.dry_run());
    if (auto done = Do(control, *id, call, by); !done) return tl::unexpected(done.error());
    const auto& verb = call.operation().verb;
    const auto asked = verb == "scale" ? "workers " + call.Text("min") + ".." + call.Text("max")
                       : verb == "priority" ? "priority " + call.Text("value")
                                            : "";
    return ActedOn(control, *id, std::move(before), call.dry_run(), asked);
  });
}

namespace {

struct Edit {
  std::optional<std::int64_t> priority;
  std::optional<std::pair<int, int>> workers;
};

Result<Edit> DecodeEdit(const std::string& body) {
  model::Problems problems;
  const auto documents = model::ParseDocuments(body, problems);
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  Edit edit;
  const auto wrong = [](const std::string& path, const std::string& hint) {
    Error error{ErrorCode::kInvalid, "\"" + path + "\" cannot be that", hint};
    error.path = path;
    return tl::unexpected(std::move(error));
  };
  if (documents.size() != 1 || documents[0].kind != model::DocKind::kMap ||
      documents[0].children.empty()) {
    return Fail(ErrorCode::kInvalid, "an edit is a map", "{\"priority\": \"high\"}");
  }
  for (const auto& child : documents[0].children) {
    if (child.key == "priority") {
      edit.priority = model::ParsePriority(child.text);
      if (!edit.priority) return wrong("priority", "a number, or low, normal, high, critical");
    } else if (child.key == "workers") {
      const auto dots = child.text.find("..");
      const auto least = model::ParseWhole(child.text.substr(0, dots));
      const auto most =
          dots == std::string::npos ? least : model::ParseWhole(child.text.substr(dots + 2));
      if (!least || !most || *least < 1 || *most < *least || *most > model::kMostWorkers) {
        return wrong("workers", "\"4\" or \"2..8\"");
      }
      edit.workers = {static_cast<int>(*least), static_cast<int>(*most)};
    } else {
      return wrong(child.key, "priority and workers can be changed");
    }
  }
  return edit;
}

}  // namespace

void EditJob(Desk& desk, const Call& call) {
  auto edit = DecodeEdit(call.request->body);
  if (!edit) return ReplyError(*call.exchange, edit.error());
  desk.Change(call, 200,
              [call, edit = *edit](Controller& control, const Access& access) -> Result<Changed> {
                auto id = Actable(control, access, call.Path("job"));
                if (!id) return tl::unexpected(id.error());
                const auto* job = control.state().Find(*id);
                if (job != nullptr) {
                  if (auto same = CheckMatch(call, TagOf(job->revision)); !same) {
                    return tl::unexpected(same.error());
                  }
                }
                if (edit.priority) {
                  auto may = access.MayPrioritize(QueueOf(control.state(), *id), *edit.priority);
                  if (!may) return tl::unexpected(may.error());
                }
                auto before = SpecText(control.state(), *id);
                // Each is checked before any is made.
                for (const bool dry : {true, false}) {
                  const control::By by(access.caller().user, dry || call.dry_run());
                  if (edit.priority) {
                    auto done = control.SetPriority(*id, *edit.priority, by);
                    if (!done) return tl::unexpected(done.error());
                  }
                  if (edit.workers) {
                    auto done = control.Scale(*id, edit.workers->first, edit.workers->second, by);
                    if (!done) return tl::unexpected(done.error());
                  }
                }
                return ActedOn(control, *id, std::move(before), call.dry_run());
              });
}

namespace {

// Of an array its first task that waits, else the first that has not ended.
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

}  // namespace

void ExplainJob(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto job = RecordOf(control, access, TaskToExplain(control, access, call.Path("job")));
    if (!job) return tl::unexpected(job.error());
    return control::WhyView(control, access, *job);
  });
}

void ListWorkers(Desk& desk, const Call& call) {
  desk.List(call, [call](Controller& control, const Access& access) -> Result<Items> {
    auto job = RecordOf(control, access, call.Path("job"));
    if (!job) return tl::unexpected(job.error());
    return Items(control::WorkersView(control, access, *job).children);
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
