// Head: what is refused on the strength of a request's head alone, before its body is read and
// before any handler sees it.
//
// Two readers that disagree about where a body ends can be made to see different requests
// (smuggling), so whatever leaves room for that is refused rather than interpreted. A browser says
// in Origin whose page is asking: pages of other sites have no business here, whatever the method.
// A name that we are not known by in Host means that somebody's name server sent the browser here
// (rebinding); that is checked on TCP, where names are configured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace muster::net {

struct Refusal {
  int status = 400;
  std::string why;
};

struct HeadRules {
  bool chunks = true;                // HTTP/1.0 knows none
  std::vector<std::string> names{};  // that we are known by, without port; empty: any
};

std::optional<Refusal> Objection(const Request& request, const HeadRules& rules);

// The key of a request for a WebSocket; null when it is not one, or not of the version we speak.
const std::string* WebSocketKey(const Request& request);

// Whether a comma-separated header holds the word, whatever its case.
bool HasWord(std::string_view list, std::string_view word);

}  // namespace muster::net
