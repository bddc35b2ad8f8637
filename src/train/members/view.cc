#include "train/members/view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace muster::train {

using Json = nlohmann::json;

void to_json(Json& json, const Endpoint& end) {
  json = {{"id", end.id},
          {"host", end.host},
          {"address", end.address},
          {"segment", end.segment},
          {"segment_bytes", end.segment_bytes}};
}
void from_json(const Json& json, Endpoint& end) {
  json.at("id").get_to(end.id);
  json.at("host").get_to(end.host);
  json.at("address").get_to(end.address);
  json.at("segment").get_to(end.segment);
  json.at("segment_bytes").get_to(end.segment_bytes);
}
void to_json(Json& json, const View& view) {
  json = {{"generation", view.generation}, {"step", view.step},
          {"members", view.members},       {"leaving", view.leaving},
          {"servers", view.servers},       {"checkpoint", view.checkpoint},
          {"waits", view.waits},           {"begun", view.begun}};
}
void from_json(const Json& json, View& view) {
  json.at("generation").get_to(view.generation);
  json.at("step").get_to(view.step);
  json.at("members").get_to(view.members);
  json.at("leaving").get_to(view.leaving);
  json.at("servers").get_to(view.servers);
  json.at("checkpoint").get_to(view.checkpoint);
  view.waits = json.value("waits", false);  // earlier versions do not have these
  view.begun = json.value("begun", false);
}
void to_json(Json& json, const Holding& holding) {
  json = Json::array(
      {static_cast<int>(holding.kind), holding.column, holding.parts, holding.part, holding.step});
}
void from_json(const Json& json, Holding& holding) {
  holding.kind =
      json.at(0).get<int>() == 0 ? Holding::Kind::kParameters : Holding::Kind::kOptimizer;
  json.at(1).get_to(holding.column);
  json.at(2).get_to(holding.parts);
  json.at(3).get_to(holding.part);
  json.at(4).get_to(holding.step);
}

namespace {

Message Read(const Json& json) {
  Message out;
  if (json.contains("join")) {
    out.join.emplace(json.at("join").get<Endpoint>(), json.at("server").get<bool>());
  } else if (json.contains("leave")) {
    out.leave.emplace();
  } else if (json.contains("stopped")) {
    auto& stopped = out.stopped.emplace();
    json.at("stopped").get_to(stopped.generation);
    json.at("planned").get_to(stopped.planned);
    json.at("completed").get_to(stopped.completed);
    json.at("holdings").get_to(stopped.holdings);
    json.at("unreachable").get_to(stopped.unreachable);
  } else {
    auto& change = out.change.emplace();
    json.at("change").get_to(change.view);
    json.at("holdings").get_to(change.holdings);
  }
  return out;
}

}  // namespace

std::optional<int> View::RankOf(MemberId id) const {
  const auto found = std::ranges::find(members, id, &Endpoint::id);
  if (found == members.end()) return std::nullopt;
  return static_cast<int>(found - members.begin());
}

bool View::Knows(MemberId id) const {
  return RankOf(id) || std::ranges::find(leaving, id, &Endpoint::id) != leaving.end();
}

bool View::IsServer(MemberId id) const { return std::ranges::find(servers, id) != servers.end(); }

std::string Encode(const JoinMessage& message) {
  return Json{{"join", message.endpoint}, {"server", message.server}}.dump();
}
std::string Encode(const LeaveMessage& /*message*/) { return Json{{"leave", true}}.dump(); }
std::string Encode(const StoppedMessage& message) {
  return Json{{"stopped", message.generation},
              {"planned", message.planned},
              {"completed", message.completed},
              {"holdings", message.holdings},
              {"unreachable", message.unreachable}}
      .dump();
}
std::string Encode(const ChangeMessage& message) {
  return Json{{"change", message.view}, {"holdings", message.holdings}}.dump();
}

Result<Message> DecodeMessage(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) {
    try {
      return Read(json);
    } catch (const Json::exception&) {  // said below
    }
  }
  return Fail(ErrorCode::kInvalid, "a message of another worker cannot be read",
              "is another version of Muster in the job?");
}

}  // namespace muster::train
