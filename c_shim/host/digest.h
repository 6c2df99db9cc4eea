#ifndef XTRADB_HOST_DIGEST_H
#define XTRADB_HOST_DIGEST_H

#include <stddef.h>
#include <stdint.h>

void md5_digest(const uint8_t *data, size_t len, uint8_t out[16]);
uint32_t crc32_digest(const uint8_t *data, size_t len);

#endif
