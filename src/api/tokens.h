// Tokens: their text, and what is kept of it.
//
// A token is mst_ID_SECRET: the id is public and names it in lists, the secret has 256 bits of the
// system's randomness. Only its SHA-256 is kept; a secret of that size needs no slower hash.
// Comparing takes the same time wherever two hashes differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

struct Token {
  std::string id;
  std::string secret;

  std::string Text() const { return "mst_" + id + "_" + secret; }
};

Token NewToken();
std::optional<Token> SplitToken(std::string_view text);
std::string HashOf(std::string_view secret);  // SHA-256, hex
bool SameHash(std::string_view a, std::string_view b);

}  // namespace muster::api
