#include "contract/lines.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "contract/fields.h"
#include "contract/order.h"

namespace muster::contract {
namespace {

using nlohmann::json;

constexpr std::size_t kMostNumbers = 256;  // a report is kept and shown, not stored for ever

json ToJson(const Hello& line) {
  return {{"type", "hello"}, {"version", line.version}, {"pid", line.pid}};
}
json ToJson(const Ready&) { return {{"type", "ready"}}; }
json ToJson(const Progress& line) {
  json out = {{"type", "report"}, {"numbers", NumbersToJson(line.numbers)}};
  if (line.step) out["step"] = *line.step;
  if (line.epoch) out["epoch"] = *line.epoch;
  if (line.samples) out["samples"] = *line.samples;
  return out;
}
json ToJson(const Checkpointed& line) {
  return {
      {"type", "checkpointed"}, {"step", line.step}, {"path", line.path}, {"at_ms", line.at_ms}};
}
json ToJson(const Resized& line) {
  json out = {{"type", "resized"}, {"workers", line.workers}, {"pause_ms", line.pause_ms}};
  if (line.step) out["step"] = *line.step;
  return out;
}
json ToJson(const Kept& line) {
  return {{"type", "kept"},
          {"path", line.path},
          {"hash", line.hash},
          {"numbers", NumbersToJson(line.numbers)}};
}
json ToJson(const Leaving& line) { return {{"type", "leaving"}, {"reason", line.reason}}; }

json ToJson(const Welcome& line) {
  return {{"type", "welcome"},
          {"version", line.version},
          {"launch", line.launch},
          {"rank", line.rank},
          {"world_size", line.world_size},
          {"generation", line.generation},
          {"restart_count", line.restart_count},
          {"checkpoint_dir", line.checkpoint_dir}};
}
json ToJson(const Resize& line) {
  json members = json::array();
  for (const auto& member : line.members) {
    json out = {{"rank", member.rank}, {"host", member.host}};
    if (member.port) out["port"] = *member.port;
    members.push_back(std::move(out));
  }
  return {{"type", "resize"}, {"generation", line.generation}, {"members", std::move(members)}};
}
json ToJson(const AskCheckpoint& line) {
  return {{"type", "checkpoint"}, {"deadline_ms", line.deadline_ms}};
}
json ToJson(const Leave& line) { return {{"type", "leave"}, {"grace_ms", line.grace_ms}}; }
json ToJson(const Stop& line) { return {{"type", "stop"}, {"grace_ms", line.grace_ms}}; }
json ToJson(const Refused& line) { return {{"type", "refused"}, {"message", line.message}}; }

void Read(Fields& fields, Hello& line) {
  line.version = fields.Version(kContractVersion);
  fields.Take("pid", line.pid);
}
void Read(Fields&, Ready&) {}
void ReadNumbers(Fields& fields, std::map<std::string, double>& numbers) {
  fields.Take("numbers", numbers);
  if (numbers.size() > kMostNumbers) {
    fields.Refuse("numbers", fmt::format("at most {} are taken", kMostNumbers));
  }
}
void Read(Fields& fields, Progress& line) {
  fields.Take("step", line.step);
  fields.Take("epoch", line.epoch);
  fields.Take("samples", line.samples);
  ReadNumbers(fields, line.numbers);
}
void Read(Fields& fields, Checkpointed& line) {
  fields.Need("step", line.step);
  fields.Need("path", line.path);
  fields.Take("at_ms", line.at_ms);
}
void Read(Fields& fields, Resized& line) {
  fields.Need("workers", line.workers);
  fields.Need("pause_ms", line.pause_ms);
  fields.Take("step", line.step);
  if (line.workers < 0) fields.Refuse("workers", "must not be negative");
  if (line.pause_ms < 0) fields.Refuse("pause_ms", "must not be negative");
}
void Read(Fields& fields, Kept& line) {
  fields.Need("path", line.path);
  fields.Take("hash", line.hash);
  ReadNumbers(fields, line.numbers);
}
void Read(Fields& fields, Leaving& line) { fields.Take("reason", line.reason); }

void Read(Fields& fields, Welcome& line) {
  line.version = fields.Version(kContractVersion);
  fields.Need("launch", line.launch);
  fields.Need("rank", line.rank);
  fields.Take("world_size", line.world_size);
  fields.Take("generation", line.generation);
  fields.Take("restart_count", line.restart_count);
  fields.Take("checkpoint_dir", line.checkpoint_dir);
}
void Read(Fields& fields, Resize& line) {
  fields.Need("generation", line.generation);
  fields.Objects("members", [&](Fields& item) {
    auto& member = line.members.emplace_back();
    item.Need("rank", member.rank);
    item.Need("host", member.host);
    item.Take("port", member.port);
  });
}
void Read(Fields& fields, AskCheckpoint& line) { fields.Need("deadline_ms", line.deadline_ms); }
void Read(Fields& fields, Leave& line) { fields.Need("grace_ms", line.grace_ms); }
void Read(Fields& fields, Stop& line) { fields.Need("grace_ms", line.grace_ms); }
void Read(Fields& fields, Refused& line) { fields.Take("message", line.message); }

template <typename Line>
bool ReadIf(std::string_view type, std::string_view name, Fields& fields, auto& out) {
  if (type != name) return false;
  Read(fields, out.template emplace<Line>());
  return true;
}

template <typename Out>
std::string EncodeLine(const Out& out) {
  return Dump(std::visit([](const auto& line) { return ToJson(line); }, out)) + "\n";
}

}  // namespace

std::string Encode(const Said& said) { return EncodeLine(said); }
std::string Encode(const Told& told) { return EncodeLine(told); }

Result<Said> DecodeSaid(std::string_view line) {
  Said said;
  auto error = ReadObject("line", line, [&](Fields& fields) {
    std::string type;
    fields.Need("type", type);
    if (fields.failed() || ReadIf<Hello>(type, "hello", fields, said) ||
        ReadIf<Ready>(type, "ready", fields, said) ||
        ReadIf<Progress>(type, "report", fields, said) ||
        ReadIf<Checkpointed>(type, "checkpointed", fields, said) ||
        ReadIf<Resized>(type, "resized", fields, said) ||
        ReadIf<Kept>(type, "kept", fields, said) ||
        ReadIf<Leaving>(type, "leaving", fields, said)) {
      return;
    }
    fields.Refuse("type", fmt::format("\"{}\" is nothing a worker says", type));
  });
  if (error) return tl::unexpected(*std::move(error));
  return said;
}

Result<Told> DecodeTold(std::string_view line) {
  Told told;
  auto error = ReadObject("line", line, [&](Fields& fields) {
    std::string type;
    fields.Need("type", type);
    if (fields.failed() || ReadIf<Welcome>(type, "welcome", fields, told) ||
        ReadIf<Resize>(type, "resize", fields, told) ||
        ReadIf<AskCheckpoint>(type, "checkpoint", fields, told) ||
        ReadIf<Leave>(type, "leave", fields, told) || ReadIf<Stop>(type, "stop", fields, told) ||
        ReadIf<Refused>(type, "refused", fields, told)) {
      return;
    }
    fields.Refuse("type", fmt::format("\"{}\" is nothing a worker is told", type));
  });
  if (error) return tl::unexpected(*std::move(error));
  return told;
}

}  // namespace muster::contract
