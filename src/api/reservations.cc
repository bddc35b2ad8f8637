#include "api/reservations.h"

#include <memory>

#include "base/units.h"
#include "control/views.h"
#include "model/fields.h"
#include "model/paths.h"
#include "model/problems.h"
#include "model/vocabulary.h"

namespace muster::api {

using control::ReservationWish;

namespace {

constexpr std::int64_t kMostGpus = 1'000'000;
constexpr std::size_t kLongestAbout = 200;
constexpr const char* kTimeRule = "a moment in UTC: 2026-11-20T09:00:00.000Z or 2026-11-20T09:00Z";

bool IsNodeName(std::string_view text) { return !text.empty(); }

std::int64_t ReadMoment(const DocNode& node, model::Problems& problems) {
  const auto text = model::ReadText(node, problems);
  if (!text) return 0;
  const auto at_ms = text->ends_with('Z') ? ParseMomentMs(*text) : std::nullopt;
  if (!at_ms) problems.Error(node.mark, model::Quoted(*text) + " is no moment", kTimeRule);
  return at_ms.value_or(0);
}

std::string ReadAbout(const DocNode& node, model::Problems& problems) {
  auto text = model::ReadText(node, problems).value_or("");
  if (text.size() > kLongestAbout) {
    problems.Error(node.mark, "`about` is too long",
                   "at most " + std::to_string(kLongestAbout) + " bytes");
  }
  return text;
}

// `name`: of the path, which the body need not repeat; empty: the body names it.
Result<ReservationWish> Decode(const Call& call, const std::string& name) {
  model::Problems problems;
  const std::vector<DocNode> documents = {BodyMap(call, problems)};
  if (problems.HasErrors()) return tl::unexpected(model::ToError(problems));
  ReservationWish wish;
  wish.name = name;
  model::MapReader reader(documents[0], "a reservation", problems);
  const auto* named =
      name.empty() ? reader.Require("name", "`\"name\": \"demo\"`") : reader.Take("name");
  if (named != nullptr) wish.name = model::ReadText(*named, problems).value_or("");
  if (!name.empty() && wish.name != name) {
    problems.Error(named->mark, "the body is not about reservation " + name, "leave its name out");
  }
  if (const auto* queue = reader.Take("queue")) {
    wish.queue = model::ReadText(*queue, problems).value_or("");
  }
  if (const auto* from = reader.Take("from")) wish.from_ms = ReadMoment(*from, problems);
  if (const auto* to = reader.Require("to", kTimeRule)) wish.to_ms = ReadMoment(*to, problems);
  if (const auto* gpus = reader.Take("gpus")) {
    wish.gpus = static_cast<int>(model::ReadInteger(*gpus, {1, kMostGpus}, problems).value_or(0));
  }
  if (const auto* type = reader.Take("gpu_type")) {
    wish.gpu_type = model::ReadMatching(*type, model::IsGpuTypeName, "a type of GPUs",
                                        "as `muster nodes` shows it: H100", problems)
                        .value_or("");
  }
  if (const auto* nodes = reader.Take("nodes")) {
    wish.nodes = model::ReadNameList(*nodes, IsNodeName, "the name of a node",
                                     "as `muster nodes` shows it", problems);
  }
  if (const auto* about = reader.Take("about")) wish.about = ReadAbout(*about, problems);
  reader.Finish();
  if (!problems.HasErrors()) return wish;
  LocateProblems(documents, problems);
  return tl::unexpected(model::ToError(problems));
}

// Null: it is not there, or not to be seen.
const state::ReservationRecord* Named(Controller& control, const Access& access,
                                      const std::string& name) {
  const auto found = control.state().reservations().find(name);
  if (found == control.state().reservations().end()) return nullptr;
  return SeesReservation(access, found->second.reservation.queue) ? &found->second : nullptr;
}

std::string TagOfOne(const state::ReservationRecord* record) {
  return record == nullptr ? "" : TagOf(record->revision);
}

std::string Text(const state::ReservationRecord* record) {
  if (record == nullptr) return "";
  return model::WriteJson(control::ReservationSpec(record->reservation));
}

Result<Changed> Set(Controller& control, const Access& access, const Call& call,
                    const ReservationWish& wish) {
  const auto* known = Named(control, access, wish.name);
  auto before = Text(known);
  const auto& who = access.caller().user;
  auto set = control.SetReservation(wish, {who, call.dry_run()});
  if (!set) return tl::unexpected(set.error());
  if (call.dry_run()) {
    auto node = control::ReservationViews(control).View({*set, who, 0, 0});
    Put(node, "dry_run", model::BoolNode(true));
    return Changed{std::move(node), {}};
  }
  const auto& record = control.state().reservations().at(wish.name);
  return Changed{Answer(control::ReservationViews(control).View(record), TagOfOne(&record)),
                 {{"reservation " + wish.name, wish.queue, std::move(before), Text(&record)}}};
}

}  // namespace

bool SeesReservation(const Access& access, const std::string& queue) {
  return queue.empty() || access.On(queue) >= control::Role::kViewer;
}

void ListReservations(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access& access) {
    std::vector<std::string> names;
    std::vector<const state::ReservationRecord*> records;
    for (const auto& [name, record] : control.state().reservations()) {
      if (!SeesReservation(access, record.reservation.queue)) continue;
      names.push_back(name);
      records.push_back(&record);
    }
    auto views = std::make_shared<control::ReservationViews>(control);
    return Items(std::move(names), [views, records = std::move(records)](std::size_t at) {
      return views->View(*records[at]);
    });
  });
}

void GetReservation(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    const auto* record = Named(control, access, call.Path("reservation"));
    if (record == nullptr) {
      return Fail(ErrorCode::kNotFound,
                  "there is no reservation \"" + call.Path("reservation") + "\"",
                  "`muster reservation list` shows them");
    }
    return Answer(control::ReservationViews(control).View(*record), TagOfOne(record));
  });
}

void CreateReservation(Desk& desk, const Call& call) {
  auto wish = Decode(call, "");
  if (!wish) return ReplyError(*call.exchange, wish.error());
  desk.Change(call, 201,
              [call, wish = std::move(*wish)](Controller& control,
                                              const Access& access) -> Result<Changed> {
                if (control.state().reservations().contains(wish.name)) {
                  return tl::unexpected(Error{
                      ErrorCode::kConflict, "there is a reservation \"" + wish.name + "\" already",
                      "choose another name, or delete that one first", "name"});
                }
                return Set(control, access, call, wish);
              });
}

void PutReservation(Desk& desk, const Call& call) {
  auto wish = Decode(call, call.Path("reservation"));
  if (!wish) return ReplyError(*call.exchange, wish.error());
  desk.Change(call, 200,
              [call, wish = std::move(*wish)](Controller& control,
                                              const Access& access) -> Result<Changed> {
                auto same = CheckMatch(call, TagOfOne(Named(control, access, wish.name)));
                if (!same) return tl::unexpected(same.error());
                return Set(control, access, call, wish);
              });
}

void DeleteReservation(Desk& desk, const Call& call) {
  desk.Change(call, 200, [call](Controller& control, const Access& access) -> Result<Changed> {
    const auto& name = call.Path("reservation");
    const auto* known = Named(control, access, name);
    if (known != nullptr) {
      auto same = CheckMatch(call, TagOfOne(known));
      if (!same) return tl::unexpected(same.error());
    }
    auto before = Text(known);
    const auto queue = known == nullptr ? "" : known->reservation.queue;
    auto done = control.RemoveReservation(name, {access.caller().user, call.dry_run()});
    if (!done) return tl::unexpected(done.error());
    return Acted(call, name, {"reservation " + name, queue, std::move(before), ""});
  });
}

}  // namespace muster::api
