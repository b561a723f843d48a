# Muster in a container: the server with everything it needs, as an unprivileged user. Everything that must outlive the
# container is in /data: the embedded PostgreSQL, unless DATABASE_URL names another, and the generated secrets.
#
#   docker build -t muster .
#   docker run --init -p 127.0.0.1:8080:8080 -v muster-data:/data muster
#
# --init (compose.yaml has it as `init: true`) puts a small init before Node, which reaps processes that the embedded
# PostgreSQL leaves behind. `docker run … muster keys admin` and the other subcommands work too.
#
# The top of test/container.test.ts says which parts of this file were tried.

# The version of Node is the one package.json pins, so the copy that npm installs for other machines is not needed here.
FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY bin ./bin
RUN npm install --omit=dev \
    && rm -rf node_modules/node-linux-* node_modules/.bin/node

# The console is built with all packages, and its files alone go into the image.
FROM node:24.21.0-bookworm-slim AS console
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY bin ./bin
RUN npm install
COPY tsconfig.json ./
COPY ui ./ui
COPY src ./src
RUN npm run prepare

FROM node:24.21.0-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 MUSTER_DATA_DIR=/data
WORKDIR /app
RUN install --directory --owner=node --group=node --mode=0700 /data
COPY --from=packages /app/node_modules ./node_modules
COPY --from=console /app/ui/dist ./ui/dist
COPY package.json ./
COPY migrations ./migrations
COPY prompts ./prompts
COPY src ./src
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/readyz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "src/bin/muster.ts"]
CMD ["start"]
