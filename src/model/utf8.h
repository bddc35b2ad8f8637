// Characters of UTF-8 text, as RFC 3629 defines them.
//
// Needed in three places that must agree: what the reader lets in, what the JSON writer lets out
// and what a message shows. Costs a few compares per character.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::model {

// Bytes of the character at the front of `text`, 0 when it is not well-formed.
std::size_t CharacterLength(std::string_view text);

// A control character at the front, of ASCII or of the block behind it: a terminal would obey it.
bool IsControl(std::string_view text);

inline bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace muster::model
