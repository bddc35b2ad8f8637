#include "contract/records.h"

#include <nlohmann/json.hpp>

#include "contract/fields.h"
#include "contract/order.h"

namespace muster::contract {
namespace {

using nlohmann::json;

void ReadLaunch(Fields& fields, std::string& launch) {
  fields.Version(kContractVersion);
  fields.Need("launch", launch);
  if (!IsLaunchName(launch)) fields.Refuse("launch", "is no name of a launch");
}

void Put(json& out, const char* key, const std::optional<std::int64_t>& value) {
  if (value) out[key] = *value;
}

}  // namespace

std::string Encode(const StartRecord& record) {
  return Dump(json{{"version", kContractVersion},
                   {"launch", record.launch},
                   {"pid", record.pid},
                   {"at_ms", record.at_ms},
                   {"limits", record.limits}});
}

std::string Encode(const ExitRecord& record) {
  return Dump(json{{"version", kContractVersion},
                   {"launch", record.launch},
                   {"pid", record.pid},
                   {"exit_code", record.exit_code},
                   {"signal", record.signal},
                   {"oom", record.oom},
                   {"stopped", record.stopped},
                   {"killed", record.killed},
                   {"failure", record.failure},
                   {"started_ms", record.started_ms},
                   {"ended_ms", record.ended_ms},
                   {"max_rss_bytes", record.max_rss_bytes},
                   {"cpu_ms", record.cpu_ms},
                   {"log_bytes_dropped", record.log_bytes_dropped}});
}

std::string Encode(const Report& record) {
  json out = {{"version", kContractVersion},
              {"launch", record.launch},
              {"at_ms", record.at_ms},
              {"ready", record.ready},
              {"leaving", record.leaving},
              {"numbers", NumbersToJson(record.numbers)},
              {"last_input_ms", record.last_input_ms}};
  Put(out, "step", record.step);
  Put(out, "epoch", record.epoch);
  Put(out, "samples", record.samples);
  for (const auto& size : record.sizes) {
    out["sizes"].push_back({{"at_ms", size.at_ms},
                            {"workers", size.workers},
                            {"pause_ms", size.pause_ms},
                            {"step", size.step}});
  }
  if (!record.kept_path.empty()) {
    out["kept_path"] = record.kept_path;
    out["kept_hash"] = record.kept_hash;
    out["kept_numbers"] = NumbersToJson(record.kept_numbers);
  }
  return Dump(out);
}

std::string Encode(const CheckpointRecord& record) {
  return Dump(json{{"version", kContractVersion},
                   {"launch", record.launch},
                   {"step", record.step},
                   {"path", record.path},
                   {"at_ms", record.at_ms}});
}

Result<StartRecord> DecodeStart(std::string_view text) {
  StartRecord record;
  auto error = ReadObject("start record", text, [&](Fields& fields) {
    ReadLaunch(fields, record.launch);
    fields.Need("pid", record.pid);
    fields.Need("at_ms", record.at_ms);
    fields.Take("limits", record.limits);
  });
  if (error) return tl::unexpected(*std::move(error));
  return record;
}

Result<ExitRecord> DecodeExit(std::string_view text) {
  ExitRecord record;
  auto error = ReadObject("exit record", text, [&](Fields& fields) {
    ReadLaunch(fields, record.launch);
    fields.Need("pid", record.pid);
    fields.Need("exit_code", record.exit_code);
    fields.Take("signal", record.signal);
    fields.Take("oom", record.oom);
    fields.Take("stopped", record.stopped);
    fields.Take("killed", record.killed);
    fields.Take("failure", record.failure);
    fields.Take("started_ms", record.started_ms);
    fields.Take("ended_ms", record.ended_ms);
    fields.Take("max_rss_bytes", record.max_rss_bytes);
    fields.Take("cpu_ms", record.cpu_ms);
    fields.Take("log_bytes_dropped", record.log_bytes_dropped);
  });
  if (error) return tl::unexpected(*std::move(error));
  return record;
}

Result<Report> DecodeReport(std::string_view text) {
  Report record;
  auto error = ReadObject("report", text, [&](Fields& fields) {
    ReadLaunch(fields, record.launch);
    fields.Need("at_ms", record.at_ms);
    fields.Take("last_input_ms", record.last_input_ms);
    fields.Take("ready", record.ready);
    fields.Take("leaving", record.leaving);
    fields.Take("step", record.step);
    fields.Take("epoch", record.epoch);
    fields.Take("samples", record.samples);
    fields.Take("numbers", record.numbers);
    fields.Take("kept_path", record.kept_path);
    fields.Take("kept_hash", record.kept_hash);
    fields.Take("kept_numbers", record.kept_numbers);
    if (!fields.Has("sizes")) return;
    fields.Objects("sizes", [&](Fields& item) {
      auto& size = record.sizes.emplace_back();
      item.Need("at_ms", size.at_ms);
      item.Need("workers", size.workers);
      item.Need("pause_ms", size.pause_ms);
      item.Take("step", size.step);
    });
  });
  if (error) return tl::unexpected(*std::move(error));
  return record;
}

Result<CheckpointRecord> DecodeCheckpoint(std::string_view text) {
  CheckpointRecord record;
  auto error = ReadObject("checkpoint record", text, [&](Fields& fields) {
    ReadLaunch(fields, record.launch);
    fields.Need("step", record.step);
    fields.Need("path", record.path);
    fields.Need("at_ms", record.at_ms);
  });
  if (error) return tl::unexpected(*std::move(error));
  return record;
}

}  // namespace muster::contract
