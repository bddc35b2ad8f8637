// What may be done to a job, and to the tasks of an array.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/jobs.h"
#include "model/fields.h"
#include "model/job_codec.h"
#include "model/paths.h"
#include "model/problems.h"
#include "model/vocabulary.h"

namespace muster::api {

using model::JobNumber;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;
using state::JobRecord;

namespace {

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

std::string TagOfJob(const state::State& state, JobNumber id) {
  if (const auto* array = state.FindArray(id)) return TagOf(array->revision);
  const auto* job = state.Find(id);
  return job == nullptr ? "" : TagOf(job->revision);
}

// The number, when the caller may act on the job or the array. Names are for one's own: whoever
// mistypes one must not stop a stranger's job that happens to be called so.
Result<JobNumber> Actable(Controller& control, const Access& access, const std::string& named) {
  const auto word = LivingOne(control, access, named);
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
    if (!job.ending) others += ", " + number;
    return Fail(ErrorCode::kConflict,
                fmt::format("several of your jobs are called {}: {}", job.spec->name, others),
                "to change one of them give its number");
  }
  return Fail(ErrorCode::kConflict, "\"" + word + "\" is job " + number + " of " + job.user,
              "to change another's job give its number");
}

// What a dry run tells: the phase that the job would have right after the change.
state::Phase PhaseAfter(const JobRecord& job, std::string_view verb, std::int64_t workers) {
  auto then = job;
  if (verb == "resume" || verb == "release") then.held = then.suspended = false;
  if (verb == "hold") then.held = true;
  if (verb == "suspend") then.suspended = true;
  std::int64_t held = 0;  // up to the last worker that has a place
  for (std::size_t w = 0; w < job.workers.size(); ++w) {
    if (job.workers[w].Holds()) held = static_cast<std::int64_t>(w) + 1;
  }
  const bool stops = verb == "cancel" || verb == "requeue" ||
                     (verb == "suspend" && !job.suspended) || (workers > 0 && workers < held);
  if (stops && job.Holds()) return state::Phase::kStopping;
  return verb == "cancel" ? state::Phase::kCancelled : PhaseOf(then);
}

Changed ActedOn(Controller& control, JobNumber id, std::string before,
                std::optional<state::Phase> would, const std::string& asked = "") {
  DocNode node = MapNode();
  Put(node, "id", TextNode(std::to_string(id)));
  const auto* job = control.state().Find(id);
  const auto* array = control.state().FindArray(id);
  std::string queue;
  if (job != nullptr) {
    Put(node, "name", TextNode(job->name()));
    Put(node, "phase", TextNode(Name(would.value_or(PhaseOf(*job)))));
    queue = job->spec->queue;
  } else if (array != nullptr) {
    Put(node, "name", TextNode(array->spec->name));
    queue = array->spec->queue;
  }
  if (would) Put(node, "dry_run", model::BoolNode(true));
  const auto tag = TagOfJob(control.state(), id);
  return {tag.empty() ? Answer(std::move(node)) : Answer(std::move(node), tag),
          {{"job " + std::to_string(id), queue, std::move(before),
            SpecText(control.state(), id, asked)}}};
}

// None: it is carried out.
std::optional<state::Phase> Would(const Controller& control, const Call& call, JobNumber id,
                                  std::int64_t workers) {
  if (!call.dry_run()) return std::nullopt;
  const auto* job = control.state().Find(id);
  return job == nullptr ? state::Phase::kWaiting : PhaseAfter(*job, call.operation().verb, workers);
}

// What stands in the parameters of the call.
struct Wish {
  std::int64_t priority = -1;
  std::int64_t least = 0, most = 0;  // workers
};

constexpr const char* kPriorities =
    "a number from 0 to 1000000, or low, normal, high, build, critical";

Result<Wish> ReadWish(const Call& call) {
  Wish wish;
  const auto& verb = call.operation().verb;
  if (verb == "priority") {
    const auto priority = model::ParsePriority(call.Text("value"));
    if (!priority) {
      return tl::unexpected(Error{ErrorCode::kUsage,
                                  "\"" + call.Text("value") + "\" is no priority", kPriorities,
                                  "value"});
    }
    wish.priority = *priority;
  }
  if (verb == "scale") {
    wish.least = call.Number("min", 0);
    wish.most = call.Number("max", 0);
    if (wish.most < wish.least) {
      return tl::unexpected(
          Error{ErrorCode::kUsage,
                fmt::format("max is {} and below min, which is {}", wish.most, wish.least),
                "give max at least the value of min", "max"});
    }
  }
  return wish;
}

Result<JobNumber> ActableBy(Controller& control, const Access& access, const Call& call,
                            const Wish& wish) {
  auto id = Actable(control, access, call.Path("job"));
  if (!id || call.operation().verb != "priority") return id;
  auto may = access.MayPrioritize(QueueOf(control.state(), *id), wish.priority);
  if (!may) return tl::unexpected(may.error());
  return id;
}

Result<void> Do(Controller& control, JobNumber id, const Call& call, const Wish& wish,
                const control::By& by) {
  const auto& verb = call.operation().verb;
  if (verb == "cancel") return control.Cancel(id, by);
  if (verb == "suspend") return control.Suspend(id, by);
  if (verb == "resume" || verb == "release") return control.Resume(id, by);
  if (verb == "hold") return control.Hold(id, by);
  if (verb == "requeue") return control.Requeue(id, by);
  if (verb == "checkpoint") return control.AskCheckpoint(id, by);
  if (verb == "scale") {
    auto scaled = control.Scale(id, static_cast<int>(wish.least), static_cast<int>(wish.most), by);
    if (!scaled && scaled.error().path == "workers") scaled.error().path = "min";
    return scaled;
  }
  if (verb == "priority") return control.SetPriority(id, wish.priority, by);
  return Fail(ErrorCode::kInternal, "nobody does \"" + verb + "\" to a job");
}

}  // namespace

void ActOnJob(Desk& desk, const Call& call) {
  const auto read = ReadWish(call);
  if (!read) return ReplyError(*call.exchange, read.error());
  const auto act = [call, wish = *read](Controller& control,
                                        const Access& access) -> Result<Changed> {
    auto id = ActableBy(control, access, call, wish);
    if (!id) return tl::unexpected(id.error());
    auto same = CheckMatch(call, TagOfJob(control.state(), *id));
    if (!same) return tl::unexpected(same.error());
    auto before = SpecText(control.state(), *id);
    const control::By by(access.caller().user, call.dry_run());
    const auto would = Would(control, call, *id, wish.most);
    if (auto done = Do(control, *id, call, wish, by); !done) return tl::unexpected(done.error());
    const auto& verb = call.operation().verb;
    const auto asked = verb == "scale" ? "workers " + call.Text("min") + ".." + call.Text("max")
                       : verb == "priority" ? "priority " + call.Text("value")
                                            : verb;
    return ActedOn(control, *id, std::move(before), would, asked);
  };
  const auto still = [call, wish = *read](Controller& control,
                                          const Access& access) -> Result<void> {
    auto id = ActableBy(control, access, call, wish);
    // A name that means several by now meant one when it was asked for.
    if (!id && id.error().code != ErrorCode::kConflict) return tl::unexpected(id.error());
    return {};
  };
  desk.Change(call, 200, act, still);
}

namespace {

struct Edit {
  std::optional<std::int64_t> priority;
  std::optional<std::pair<int, int>> workers;
};

// "4" or "2..8".
std::optional<std::pair<int, int>> ParseWorkers(const std::string& text) {
  const auto dots = text.find("..");
  const auto least = model::ParseWhole(text.substr(0, dots));
  const auto most = dots == std::string::npos ? least : model::ParseWhole(text.substr(dots + 2));
  if (!least || !most || *least < 1 || *most < *least || *most > model::kMostWorkers) {
    return std::nullopt;
  }
  return std::pair{static_cast<int>(*least), static_cast<int>(*most)};
}

Result<Edit> DecodeEdit(const Call& call) {
  model::Problems problems;
  const std::vector<DocNode> documents = {BodyMap(call, problems)};
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  Edit edit;
  model::MapReader reader(documents[0], "an edit", problems);
  if (const auto* priority = reader.Take("priority")) {
    edit.priority = model::ParsePriority(priority->text);
    if (!edit.priority) {
      problems.Error(priority->mark, "that is no priority", kPriorities);
    }
  }
  if (const auto* workers = reader.Take("workers")) {
    edit.workers = ParseWorkers(workers->text);
    if (!edit.workers) {
      problems.Error(workers->mark, "that is no number of workers", "\"4\" or \"2..8\"");
    }
  }
  reader.Finish();
  if (documents[0].children.empty()) {
    problems.Error({}, "there is nothing to change", "priority, workers");
  }
  if (!problems.HasErrors()) return edit;
  LocateProblems(documents, problems);
  return tl::unexpected(model::ToError(problems));
}

std::string Asked(const Edit& edit) {
  std::string asked;
  if (edit.priority) asked = fmt::format("priority {}", *edit.priority);
  if (edit.workers) {
    asked += fmt::format("{}workers {}..{}", asked.empty() ? "" : ", ", edit.workers->first,
                         edit.workers->second);
  }
  return asked;
}

}  // namespace

void EditJob(Desk& desk, const Call& call) {
  auto edit = DecodeEdit(call);
  if (!edit) return ReplyError(*call.exchange, edit.error());
  desk.Change(call, 200,
              [call, edit = *edit](Controller& control, const Access& access) -> Result<Changed> {
                auto id = Actable(control, access, call.Path("job"));
                if (!id) return tl::unexpected(id.error());
                auto same = CheckMatch(call, TagOfJob(control.state(), *id));
                if (!same) return tl::unexpected(same.error());
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
                const auto would =
                    Would(control, call, *id, edit.workers ? edit.workers->second : 0);
                return ActedOn(control, *id, std::move(before), would, Asked(edit));
              });
}

}  // namespace muster::api
