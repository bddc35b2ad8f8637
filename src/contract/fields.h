// Fields: reading the fields of one JSON object into values; used by the codecs of this room.
//
// The first fault is kept and everything after it is skipped, so that a codec reads straight down
// and asks once at the end. Unknown fields are ignored, a newer version is refused. Integers may be
// written as whole floats, because some languages know no others; numbers that JSON cannot write
// are the strings "nan", "inf", "-inf". One parse and one copy per value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::contract {

class Fields {
 public:
  // What the error says was wrong: "launch order". Both must outlive this.
  Fields(const nlohmann::json& object, std::string_view what, std::optional<Error>& error)
      : object_(object), what_(what), error_(error) {}

  // Must be there and not newer than `newest`.
  int Version(int newest);

  // Bool, int, std::uint32_t, std::int64_t, std::string; vectors of those; maps of strings or
  // doubles.
  template <typename T>
  void Need(const char* key, T& out);
  // Leaves `out` as it is when the field is absent or null.
  template <typename T>
  void Take(const char* key, T& out);
  template <typename T>
  void Take(const char* key, std::optional<T>& out) {
    if (Has(key)) Need(key, out.emplace());
  }

  bool Has(const char* key) const;
  void Object(const char* key, const std::function<void(Fields&)>& read);
  void Objects(const char* key, const std::function<void(Fields&)>& read);

  // "launch order: <key>: <why>", unless something was wrong before.
  void Refuse(const char* key, const std::string& why);
  bool failed() const { return error_.has_value(); }

 private:
  const nlohmann::json* Find(const char* key) const;

  const nlohmann::json& object_;
  std::string_view what_;
  std::optional<Error>& error_;
};

// Parses `text` as one object and lets `read` take it apart.
std::optional<Error> ReadObject(std::string_view what, std::string_view text,
                                const std::function<void(Fields&)>& read);

nlohmann::json NumbersToJson(const std::map<std::string, double>& numbers);
std::string Dump(const nlohmann::json& object);

}  // namespace muster::contract
