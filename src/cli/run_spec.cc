#include "cli/run_spec.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "model/problems.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

// A number where it is one; else the text, and the file's rules say what is wrong with it.
Json NumberOrText(const std::string& text) {
  auto value = Json::parse(text, nullptr, false);
  return value.is_number() ? value : Json(text);
}

// A job file with one value a line, so that a problem's line tells which flag it came from.
class FlagFile {
 public:
  struct Value {
    const char* flag;
    std::string key;
    Json value;
  };

  void Put(const char* flag, const char* key, const Json& value) {
    lines_.emplace_back(flag, LineOf(key, value));
  }
  void PutNumber(const char* flag, const char* key, const std::string& text) {
    if (!text.empty()) Put(flag, key, NumberOrText(text));
  }
  void PutText(const char* flag, const char* key, const std::string& text) {
    if (!text.empty()) Put(flag, key, text);
  }
  // The values stand in a map of their own, still one a line.
  void PutMap(const char* key, const std::vector<Value>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::string line = i == 0 ? Json(key).dump() + ": {" : "";
      line += LineOf(values[i].key, values[i].value);
      if (i + 1 == values.size()) line += "}";
      lines_.emplace_back(values[i].flag, std::move(line));
    }
  }

  Result<model::SpecFile> Decode() const {
    std::string text = "{";
    for (const auto& [flag, line] : lines_) {
      text += text.size() > 1 ? ",\n" : "\n";
      text += line;
    }
    auto decoded = model::DecodeSpec(text + "\n}");
    if (!decoded.problems.HasErrors()) return std::move(decoded.spec);
    Error error{ErrorCode::kUsage, "", ""};
    for (const auto& problem : decoded.problems.Sorted()) {
      if (problem.severity != model::Severity::kError) continue;
      if (!error.message.empty()) error.message += "; ";
      const auto line = static_cast<std::size_t>(std::max(problem.mark.line, 2)) - 2;
      const bool known = problem.mark.line >= 2 && line < lines_.size();
      std::string_view said = problem.message;
      if (known) {
        error.message += std::string(lines_[line].first) + ": ";
        // The flag stands for the key, which nobody wrote.
        if (const auto end = said.find("`: "); said.starts_with('`') && end != said.npos) {
          said.remove_prefix(end + 3);
        }
      }
      error.message += said;
      if (!problem.allowed.empty()) error.message += " (allowed: " + problem.allowed + ")";
    }
    return tl::unexpected(std::move(error));
  }

 private:
  static std::string LineOf(const std::string& key, const Json& value) {
    const auto replace = Json::error_handler_t::replace;
    return Json(key).dump(-1, ' ', false, replace) + ": " + value.dump(-1, ' ', false, replace);
  }

  std::vector<std::pair<const char*, std::string>> lines_;
};

// "K=V" as both; what has no equals sign is a mistake, or the caller's own value of it.
Result<std::vector<FlagFile::Value>> Pairs(const char* flag, const std::vector<std::string>& words,
                                           bool from_caller) {
  std::vector<FlagFile::Value> out;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    std::string key = word.substr(0, equals);
    if (equals != std::string::npos) {
      out.push_back({flag, std::move(key), word.substr(equals + 1)});
      continue;
    }
    if (!from_caller) {
      return Fail(ErrorCode::kUsage, std::string(flag) + ": \"" + word + "\" has no value",
                  "write KEY=VALUE");
    }
    const char* own = std::getenv(key.c_str());
    if (own == nullptr) {
      return Fail(ErrorCode::kUsage,
                  std::string(flag) + ": " + key + " is not set here, so it cannot be passed on",
                  "set it, or write " + key + "=VALUE");
    }
    out.push_back({flag, std::move(key), own});
  }
  return out;
}

std::vector<std::string> SplitAll(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const auto& word : words) {
    for (std::size_t begin = 0; begin <= word.size();) {
      const auto end = std::min(word.find(',', begin), word.size());
      if (end > begin) out.push_back(word.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return out;
}

std::string NameOf(const RunOptions& options) {
  if (!options.name.empty()) return options.name;
  if (options.command.empty()) {
    return options.from_template.empty() ? "run" : options.from_template;
  }
  auto name = std::filesystem::path(options.command.front()).filename().string();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  }
  return name;
}

Result<void> PutMaps(const RunOptions& options, FlagFile& file) {
  const auto env = Pairs("--env", options.env, true);
  if (!env) return tl::unexpected(env.error());
  file.PutMap("env", *env);
  const auto labels = Pairs("--label", options.labels, false);
  if (!labels) return tl::unexpected(labels.error());
  file.PutMap("labels", *labels);
  const auto topology = Pairs("--topology", SplitAll(options.topology), false);
  if (!topology) {
    return Fail(ErrorCode::kUsage, topology.error().message, "write require=rack or prefer=nvlink");
  }
  file.PutMap("topology", *topology);
  std::vector<FlagFile::Value> limits;
  if (!options.time.empty()) limits.push_back({"--time", "time", options.time});
  if (!options.retries.empty()) {
    limits.push_back({"--retries", "retries", NumberOrText(options.retries)});
  }
  if (!options.idle.empty()) limits.push_back({"--idle", "idle", options.idle});
  file.PutMap("limits", limits);
  return {};
}

}  // namespace

Result<model::SpecFile> SpecOf(const RunOptions& options) {
  if (options.command.empty() && options.from_template.empty() && options.image.empty()) {
    return Fail(ErrorCode::kUsage, "there is nothing to run",
                "write -- and the command behind the flags, or name a --template");
  }
  FlagFile file;
  file.Put("--name", "name", NameOf(options));
  file.Put("--queue", "queue", options.queue);
  file.Put("--kind", "kind", options.kind);
  if (!options.command.empty()) file.Put("COMMAND", "command", options.command);
  file.PutNumber("--gpus", "gpus", options.gpus == "0" ? "" : options.gpus);
  file.PutNumber("--cpus", "cpus", options.cpus);
  file.PutText("--memory", "memory", options.memory);
  file.PutNumber("--workers", "workers", options.workers);
  file.PutNumber("--priority", "priority", options.priority);
  file.PutText("--framework", "framework", options.framework);
  file.PutText("--image", "image", options.image);
  file.PutText("--workdir", "workdir", options.workdir);
  file.PutText("--template", "template", options.from_template);
  file.PutText("--array", "array", options.array);
  if (const auto types = SplitAll(options.gpu_types); !types.empty()) {
    file.Put("--gpu-types", "gpu_types", types);
  }
  if (!options.after.empty()) file.Put("--after", "after", SplitAll(options.after));
  if (options.preemptible) {
    file.Put(*options.preemptible ? "--preemptible" : "--no-preemptible", "preemptible",
             *options.preemptible);
  }
  if (options.terminal) file.Put("--terminal", "terminal", true);
  if (auto maps = PutMaps(options, file); !maps) return tl::unexpected(maps.error());
  return file.Decode();
}

}  // namespace muster::cli
