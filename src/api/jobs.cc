#include "api/jobs.h"

#include <algorithm>
#include <iterator>
#include <thread>

#include "api/listing.h"
#include "api/tokens.h"
#include "control/plan.h"
#include "control/view_parts.h"
#include "control/views.h"
#include "model/fields.h"
#include "model/job_codec.h"
#include "model/problems.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"

namespace muster::api {

using model::JobNumber;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;
using state::JobRecord;

namespace {

constexpr std::int64_t kDefaultLimit = 200;

tl::unexpected<Error> IsArray(const state::ArrayRecord& array) {
  const auto& spec = *array.spec;
  return Fail(
      ErrorCode::kInvalid, "job " + std::to_string(array.id) + " is an array",
      "name one of its tasks: " + spec.name + "[" + std::to_string(spec.array->first) + "]");
}

Result<std::vector<model::Job>> DecodeJobs(const std::string& body) {
  auto decoded = model::DecodeSpec(body);
  if (decoded.problems.HasErrors()) return tl::unexpected(model::ToError(decoded.problems));
  if (decoded.spec.jobs.empty() || !decoded.spec.queues.empty()) {
    return Fail(ErrorCode::kInvalid, "this is not a job file",
                "`muster queue apply` takes queues; a job has a name and a command");
  }
  return std::move(decoded.spec.jobs);
}

std::string SpecText(const JobRecord* job) {
  if (job == nullptr) return "";
  DocNode node = MapNode();
  Put(node, "phase", TextNode(Name(PhaseOf(*job))));
  Put(node, "priority", NumberNode(job->spec->priority));
  std::int64_t most = 0, least = 0;
  for (const auto& role : job->spec->roles) most += role.count;
  for (const auto& group : job->spec->groups) least += group.parent < 0 ? group.minimum : 0;
  Put(node, "workers_min", NumberNode(least));
  Put(node, "workers_max", NumberNode(most));
  return model::WriteJson(node);
}

// The number, when the caller may act on the job or the array.
Result<JobNumber> Actable(Controller& control, const Access& access, const std::string& word) {
  auto id = control.Resolve(word, access.caller().user);
  if (!id) return id;
  if (const auto* array = control.state().FindArray(*id)) {
    if (access.Acts(array->user, array->spec->queue)) return id;
    JobRecord as_job;
    as_job.id = array->id;
    as_job.user = array->user;
    as_job.spec = array->spec;
    if (auto may = access.MayAct(as_job); !may) return tl::unexpected(may.error());
    return id;
  }
  auto job = RecordOf(control, access, std::to_string(*id));
  if (!job) return tl::unexpected(job.error());
  if (auto may = access.MayAct(*job); !may) return tl::unexpected(may.error());
  return id;
}

Changed ActedOn(Controller& control, JobNumber id, std::string before, bool dry_run) {
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
  return {std::move(node), "job " + std::to_string(id), queue, std::move(before), SpecText(job)};
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

// By number the page is found where it begins; for any other order all have to be looked at.
template <typename Wanted>
void Collect(const state::State& state, const Order& order, const std::string& cursor,
             std::size_t most, std::vector<Entry>& entries, const Wanted& wanted) {
  const auto& jobs = state.jobs();
  const auto add = [&](const JobRecord& job) {
    if (wanted(job)) entries.push_back({KeyOf(order, job), &job});
  };
  if (order.key != "id") {
    entries.reserve(jobs.size());
    for (const auto& [id, job] : jobs) add(job);
    return;
  }
  const auto at = model::ParseWhole(cursor.substr(0, cursor.find('.')));
  const auto last = static_cast<JobNumber>(at.value_or(0));
  if (order.descending) {
    auto from = std::make_reverse_iterator(at ? jobs.lower_bound(last) : jobs.end());
    for (; from != jobs.rend() && entries.size() < most; ++from) add(from->second);
  } else {
    auto from = at ? jobs.upper_bound(last) : jobs.begin();
    for (; from != jobs.end() && entries.size() < most; ++from) add(from->second);
  }
}

// The latest records about a job that `view` turns into something, newest first.
template <typename View>
Result<DocNode> Latest(Controller& control, JobNumber job, std::size_t limit, const View& view) {
  state::RecordQuery query;
  query.job = job;
  query.latest = true;
  query.limit = limit * 20;  // most are of other kinds
  DocNode list = ListNode();
  auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
    auto body = model::DecodeEvent(record.body);
    if (!body) return tl::unexpected(body.error());
    if (auto node = view(record, *body)) list.children.push_back(std::move(*node));
    return {};
  });
  if (!read) return tl::unexpected(read.error());
  std::reverse(list.children.begin(), list.children.end());
  if (list.children.size() > limit) list.children.resize(limit);
  return list;
}

}  // namespace

Result<JobRecord> RecordOf(Controller& control, const Access& access, const std::string& word) {
  auto id = control.Resolve(word, access.caller().user);
  if (!id) return tl::unexpected(id.error());
  if (const auto* array = control.state().FindArray(*id)) return IsArray(*array);
  if (const auto* job = control.state().Find(*id)) {
    if (auto may = access.MaySee(*job); !may) return tl::unexpected(may.error());
    return *job;
  }
  state::HistoryQuery query;
  query.job = *id;
  auto rows = control.store().History(query);
  if (!rows) return tl::unexpected(rows.error());
  if (rows->empty()) {
    return Fail(ErrorCode::kNotFound, "job " + std::to_string(*id) + " is not remembered any more",
                "it was an array whose tasks have all ended, or its history was compacted");
  }
  auto job = state::DecodeJobRecord(rows->front().body);
  if (!job) return job;
  if (auto may = access.MaySee(*job); !may) return tl::unexpected(may.error());
  return job;
}

void ListJobs(Desk& desk, const Call& call) {
  auto filter = ParseFilter(call.Text("filter"));
  if (!filter) return ReplyError(*call.exchange, filter.error());
  for (const char* key : {"user", "phase"}) {
    if (const auto value = call.Text(key); !value.empty()) {
      filter->push_back({key, Condition::Op::kIs, value, 0});
    }
  }
  const auto order = ParseOrder(call.Text("sort"));
  const bool all = call.Flag("all");
  if (all && order.key != "id") {
    return ReplyError(*call.exchange,
                      {ErrorCode::kUsage, "jobs that have ended are listed by their numbers only",
                       "leave out `all`, or sort by id or created_at", "sort"});
  }
  desk.Read(call,
            [call, filter = std::move(*filter), order, all](
                Controller& control, const Access& access) -> Result<Answer> {
              const auto queue = call.Text("queue"), below = queue + "/";
              const auto limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
              const auto wanted = [&](const JobRecord& job) {
                const auto& of = job.spec->queue;
                return (queue.empty() || of == queue || of.starts_with(below)) &&
                       access.Sees(job.user, of) && Holds(filter, job);
              };
              std::vector<Entry> entries;
              Collect(control.state(), order, call.Text("cursor"), limit + 1, entries,
                      [&](const JobRecord& job) { return (all || !job.ending) && wanted(job); });
              // What only history has, newest first, from where the page begins.
              std::vector<JobRecord> old;
              if (all) {
                const auto cursor = call.Text("cursor");
                state::HistoryQuery query;
                query.queue = queue;
                query.user = call.Text("user");
                query.limit = limit + 1 + state::kEndedKept;
                if (order.descending && !cursor.empty()) {
                  query.before = static_cast<JobNumber>(
                      model::ParseWhole(cursor.substr(0, cursor.find('.'))).value_or(0));
                }
                auto rows = control.store().History(query);
                if (!rows) return tl::unexpected(rows.error());
                old.reserve(rows->size());
                for (const auto& row : *rows) {
                  if (control.state().Find(row.job) != nullptr) continue;
                  auto job = state::DecodeJobRecord(row.body);
                  if (job && wanted(*job)) old.push_back(std::move(*job));
                }
                for (const auto& job : old) entries.push_back({KeyOf(order, job), &job});
              }
              auto page = Page(std::move(entries), order, call.Text("cursor"), limit + 1);
              if (!page) return tl::unexpected(page.error());
              const bool more = page->size() > limit;
              if (more) page->resize(limit);
              DocNode list = ListNode();
              const auto fields = call.Text("fields");
              for (const auto& entry : *page) {
                auto view = control::JobView(control, *entry.job, false);
                list.children.push_back(fields.empty() ? std::move(view) : Pick(view, fields));
              }
              DocNode node = MapNode();
              Put(node, "jobs", std::move(list));
              if (more) Put(node, "next", TextNode(CursorOf(page->back())));
              Put(node, "revision",
                  NumberNode(static_cast<std::int64_t>(control.state().revision())));
              return node;
            });
}

void SubmitJobs(Desk& desk, const Call& call) {
  auto jobs = DecodeJobs(call.request->body);
  if (!jobs) return ReplyError(*call.exchange, jobs.error());
  const auto* key = call.request->Find("Idempotency-Key");
  desk.Change(
      call, 201,
      [call, jobs = std::move(*jobs), key = key == nullptr ? "" : *key](
          Controller& control, const Access& access) -> Result<Changed> {
        std::vector<control::Submission> submissions;
        submissions.reserve(jobs.size());
        const auto& caller = access.caller();
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          if (auto may = access.MaySubmit(jobs[i].queue); !may) {
            return tl::unexpected(may.error());
          }
          control::Submission one;
          one.spec = jobs[i];
          one.user = caller.user;
          one.uid = caller.uid;
          one.gid = caller.gid;
          one.held = call.Flag("held");
          one.dry_run = call.dry_run();
          if (!key.empty()) one.key = key + "#" + std::to_string(i);
          submissions.push_back(std::move(one));
        }
        auto made = control.SubmitAll(std::move(submissions));
        if (!made) return tl::unexpected(made.error());
        DocNode list = ListNode();
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          DocNode one = MapNode();
          Put(one, "id", TextNode(std::to_string((*made)[i])));
          Put(one, "name", TextNode(jobs[i].name));
          Put(one, "queue", TextNode(jobs[i].queue));
          if (const auto& range = jobs[i].array) {
            Put(one, "tasks", NumberNode(range->last - range->first + 1));
          }
          list.children.push_back(std::move(one));
        }
        DocNode node = MapNode();
        Put(node, "jobs", std::move(list));
        const std::string object = "job " + std::to_string(made->front()) +
                                   (made->size() > 1 ? " to " + std::to_string(made->back()) : "");
        DocNode after = MapNode();
        Put(after, "jobs", NumberNode(static_cast<std::int64_t>(jobs.size())));
        control::MaskEnv(Put(after, "first", model::JobToNode(jobs.front())));
        return Changed{std::move(node), object, jobs.front().queue, "", model::WriteJson(after)};
      });
}

void GetJob(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto id = control.Resolve(call.Path("job"), access.caller().user);
    if (!id) return tl::unexpected(id.error());
    const auto fields = call.Text("fields");
    const auto shown = [&fields](DocNode node) {
      return fields.empty() ? std::move(node) : Pick(node, fields);
    };
    if (const auto* array = control.state().FindArray(*id)) {
      if (!access.Sees(array->user, array->spec->queue)) {
        return Fail(ErrorCode::kNotFound, "there is no job " + std::to_string(*id));
      }
      auto view = control::ArrayView(control.state(), *array);
      const auto tag = "\"" + HashOf(model::WriteJson(view)).substr(0, 16) + "\"";
      return Answer(shown(std::move(view)), tag);
    }
    auto job = RecordOf(control, access, std::to_string(*id));
    if (!job) return tl::unexpected(job.error());
    const auto secrets = access.Acts(job->user, job->spec->queue) ? control::Secrets::kShown
                                                                  : control::Secrets::kHidden;
    return Answer(shown(control::JobView(control, *job, true, secrets)), TagOf(job->revision));
  });
}

void ActOnJob(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    auto id = Actable(control, access, call.Path("job"));
    if (!id) return tl::unexpected(id.error());
    auto before = SpecText(control.state().Find(*id));
    const control::By by(access.caller().user, call.dry_run());
    if (auto done = Do(control, *id, call, by); !done) return tl::unexpected(done.error());
    return ActedOn(control, *id, std::move(before), call.dry_run());
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
                auto before = SpecText(job);
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
  const auto id = control.Resolve(word, access.caller().user);
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
    return control::WhyView(control, *job);
  });
}

void ListWorkers(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto job = RecordOf(control, access, call.Path("job"));
    if (!job) return tl::unexpected(job.error());
    DocNode node = MapNode();
    Put(node, "workers", control::WorkersView(control, *job));
    return node;
  });
}

void ListJobEvents(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto id = control.Resolve(call.Path("job"), access.caller().user);
    if (!id) return tl::unexpected(id.error());
    if (const auto* array = control.state().FindArray(*id)) {
      if (!access.Sees(array->user, array->spec->queue)) {
        return Fail(ErrorCode::kNotFound, "there is no job " + std::to_string(*id));
      }
    } else if (auto job = RecordOf(control, access, std::to_string(*id)); !job) {
      return tl::unexpected(job.error());
    }
    state::RecordQuery query;
    query.job = *id;
    query.after = static_cast<std::uint64_t>(call.Number("since", 0));
    query.limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
    query.latest = call.Text("since").empty();
    DocNode list = ListNode();
    auto read = control.store().Read(query, [&](const state::Record& record) -> Result<void> {
      auto body = model::DecodeEvent(record.body);
      if (!body) return tl::unexpected(body.error());
      list.children.push_back(control::RecordView(record, *body));
      return {};
    });
    if (!read) return tl::unexpected(read.error());
    DocNode node = MapNode();
    Put(node, "events", std::move(list));
    Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
    return node;
  });
}

void ListJobDecisions(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto job = RecordOf(control, access, call.Path("job"));
    if (!job) return tl::unexpected(job.error());
    const auto limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
    auto list = Latest(control, job->id, limit, control::DecisionView);
    if (!list) return tl::unexpected(list.error());
    DocNode node = MapNode();
    Put(node, "decisions", std::move(*list));
    return node;
  });
}

void ListCheckpoints(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    auto job = RecordOf(control, access, call.Path("job"));
    if (!job) return tl::unexpected(job.error());
    const auto limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
    auto list = Latest(control, job->id, limit, control::CheckpointView);
    if (!list) return tl::unexpected(list.error());
    DocNode node = MapNode();
    Put(node, "checkpoints", std::move(*list));
    return node;
  });
}

// The state is copied on the controller's thread and tried out on another: a large cluster takes a
// moment, and nobody should wait for a question.
void PlanJob(Desk& desk, const Call& call) {
  auto jobs = DecodeJobs(call.request->body);
  if (!jobs) return ReplyError(*call.exchange, jobs.error());
  if (jobs->size() != 1 || jobs->front().array) {
    return ReplyError(*call.exchange, {ErrorCode::kInvalid, "a plan is for one job",
                                       "submit several with --dry-run to check them"});
  }
  desk.Begin(call,
             [call, job = std::move(jobs->front())](Controller& control,
                                                    const Access& access) -> Result<void> {
               if (auto may = access.MaySubmit(job.queue); !may) return may;
               control::Submission submission;
               submission.spec = job;
               submission.user = access.caller().user;
               submission.dry_run = true;
               if (auto sound = control.Submit(submission); !sound)
                 return tl::unexpected(sound.error());
               auto trial = std::make_shared<control::Trial>(control, job, access.caller());
               std::thread([call, trial] {
                 auto plan = trial->Run();
                 if (plan) return ReplyNode(*call.exchange, *plan, 200);
                 ReplyError(*call.exchange, plan.error());
               }).detach();
               return {};
             });
}

}  // namespace muster::api
