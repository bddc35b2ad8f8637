#include "contract/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace muster::contract {
namespace {

using nlohmann::json;

constexpr double kLargestWhole = 9007199254740992.0;  // 2^53: above it a double skips integers

bool Get(const json& from, bool& out) {
  if (!from.is_boolean()) return false;
  out = from.get<bool>();
  return true;
}

bool Get(const json& from, std::int64_t& out) {
  if (from.is_number_float()) {
    const auto value = from.get<double>();
    if (std::trunc(value) != value || std::abs(value) > kLargestWhole) return false;
    out = static_cast<std::int64_t>(value);
    return true;
  }
  if (!from.is_number_integer()) return false;
  if (from.is_number_unsigned() && from.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) {
    return false;
  }
  out = from.get<std::int64_t>();
  return true;
}

template <typename Small>
bool GetSmall(const json& from, Small& out) {
  std::int64_t value = 0;
  if (!Get(from, value)) return false;
  if (value < std::int64_t{std::numeric_limits<Small>::min()} ||
      value > std::int64_t{std::numeric_limits<Small>::max()}) {
    return false;
  }
  out = static_cast<Small>(value);
  return true;
}

bool Get(const json& from, int& out) { return GetSmall(from, out); }
bool Get(const json& from, std::uint32_t& out) { return GetSmall(from, out); }

bool Get(const json& from, double& out) {
  if (from.is_number()) {
    out = from.get<double>();
    return true;
  }
  if (!from.is_string()) return false;
  const auto& text = from.get_ref<const std::string&>();
  if (text == "nan") {
    out = std::numeric_limits<double>::quiet_NaN();
  } else if (text == "inf" || text == "-inf") {
    out = text == "inf" ? HUGE_VAL : -HUGE_VAL;
  } else {
    return false;
  }
  return true;
}

bool Get(const json& from, std::string& out) {
  if (!from.is_string()) return false;
  out = from.get_ref<const std::string&>();
  return true;
}

template <typename T>
bool Get(const json& from, std::vector<T>& out) {
  if (!from.is_array()) return false;
  out.clear();
  for (const auto& item : from) {
    if (!Get(item, out.emplace_back())) return false;
  }
  return true;
}

template <typename T>
bool Get(const json& from, std::map<std::string, T>& out) {
  if (!from.is_object()) return false;
  out.clear();
  for (const auto& [key, value] : from.items()) {
    if (!Get(value, out[key])) return false;
  }
  return true;
}

std::string_view Name(const bool&) { return "true or false"; }
std::string_view Name(const int&) { return "a whole number of 32 bits"; }
std::string_view Name(const std::uint32_t&) { return "a whole number of 32 bits without sign"; }
std::string_view Name(const std::int64_t&) { return "a whole number"; }
std::string_view Name(const std::string&) { return "a string"; }
std::string_view Name(const std::vector<int>&) { return "an array of whole numbers"; }
std::string_view Name(const std::vector<std::uint32_t>&) { return "an array of whole numbers"; }
std::string_view Name(const std::vector<std::string>&) { return "an array of strings"; }
std::string_view Name(const std::map<std::string, std::string>&) { return "an object of strings"; }
std::string_view Name(const std::map<std::string, double>&) { return "an object of numbers"; }

}  // namespace

int Fields::Version(int newest) {
  int version = 0;
  Need("version", version);
  if (failed()) return 0;
  if (version < 1) Refuse("version", fmt::format("{} is no version", version));
  if (version > newest) {
    error_ = Error{ErrorCode::kConflict,
                   fmt::format("{} has contract version {}; this program knows up to {}", what_,
                               version, newest),
                   "update the older of the two programs"};
  }
  return version;
}

const json* Fields::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::Has(const char* key) const { return Find(key) != nullptr; }

void Fields::Refuse(const char* key, const std::string& why) {
  if (!failed())
    error_ = Error{ErrorCode::kInvalid, fmt::format("{}: {}: {}", what_, key, why), {}};
}

template <typename T>
void Fields::Need(const char* key, T& out) {
  if (failed()) return;
  const json* found = Find(key);
  if (found == nullptr) return Refuse(key, "missing");
  if (!Get(*found, out)) Refuse(key, fmt::format("must be {}", Name(out)));
}

template <typename T>
void Fields::Take(const char* key, T& out) {
  if (Has(key)) Need(key, out);
}

void Fields::Object(const char* key, const std::function<void(Fields&)>& read) {
  if (failed()) return;
  const json* found = Find(key);
  if (found == nullptr || !found->is_object()) return Refuse(key, "must be an object");
  const std::string inner = fmt::format("{}: {}", what_, key);
  Fields fields(*found, inner, error_);
  read(fields);
}

void Fields::Objects(const char* key, const std::function<void(Fields&)>& read) {
  if (failed()) return;
  const json* found = Find(key);
  if (found == nullptr || !found->is_array()) return Refuse(key, "must be an array of objects");
  const std::string inner = fmt::format("{}: {}", what_, key);
  for (const auto& item : *found) {
    if (!item.is_object()) return Refuse(key, "must be an array of objects");
    Fields fields(item, inner, error_);
    read(fields);
  }
}

template void Fields::Need(const char*, int&);
template void Fields::Need(const char*, std::int64_t&);
template void Fields::Need(const char*, std::uint32_t&);
template void Fields::Need(const char*, std::string&);
template void Fields::Need(const char*, std::vector<std::string>&);
template void Fields::Take(const char*, bool&);
template void Fields::Take(const char*, int&);
template void Fields::Take(const char*, std::int64_t&);
template void Fields::Take(const char*, std::string&);
template void Fields::Take(const char*, std::vector<std::string>&);
template void Fields::Take(const char*, std::vector<int>&);
template void Fields::Take(const char*, std::vector<std::uint32_t>&);
template void Fields::Take(const char*, std::map<std::string, std::string>&);
template void Fields::Take(const char*, std::map<std::string, double>&);

std::optional<Error> ReadObject(std::string_view what, std::string_view text,
                                const std::function<void(Fields&)>& read) {
  const auto object = json::parse(text, nullptr, false);
  if (object.is_discarded() || !object.is_object()) {
    return Error{ErrorCode::kInvalid, fmt::format("{}: not a JSON object", what), {}};
  }
  std::optional<Error> error;
  Fields fields(object, what, error);
  read(fields);
  return error;
}

json NumbersToJson(const std::map<std::string, double>& numbers) {
  json out = json::object();
  for (const auto& [key, value] : numbers) {
    if (std::isfinite(value)) {
      out[key] = value;
    } else {
      out[key] = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    }
  }
  return out;
}

std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace muster::contract
