"""The AWS of moto: sets up a small VPC, changes instances, and shows what exists, for scripts/cloud-aws.sh."""

import json
import sys

import boto3

CLUSTER = "lab"
CREDENTIALS = {"aws_access_key_id": "x", "aws_secret_access_key": "y", "region_name": "us-east-1"}


def client(endpoint, service):
    return boto3.client(service, endpoint_url=endpoint, **CREDENTIALS)


def set_up(endpoint):
    """Two instances in a subnet, with a route table that the provider finds by its tag."""
    ec2 = client(endpoint, "ec2")
    tags = [{"Key": f"kubernetes.io/cluster/{CLUSTER}", "Value": "owned"}, {"Key": "Name", "Value": CLUSTER}]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    ec2.create_tags(Resources=[vpc, subnet, table, group], Tags=tags)
    instances = []
    for _ in range(2):
        instance = ec2.run_instances(
            ImageId="ami-12c6146b", MinCount=1, MaxCount=1, InstanceType="m5.large", SubnetId=subnet,
            SecurityGroupIds=[group],
        )["Instances"][0]
        ec2.create_tags(Resources=[instance["InstanceId"]], Tags=tags)
        instances.append({"id": instance["InstanceId"], "name": instance["PrivateDnsName"]})
    return {"vpc": vpc, "subnet": subnet, "table": table, "instances": instances}


def routes(endpoint):
    """The destinations of the routes to instances, by instance."""
    tables = client(endpoint, "ec2").describe_route_tables()["RouteTables"]
    found = [route for table in tables for route in table["Routes"] if route.get("InstanceId")]
    return {route["InstanceId"]: route["DestinationCidrBlock"] for route in found}


def balancers(endpoint):
    return [balancer["DNSName"] for balancer in client(endpoint, "elbv2").describe_load_balancers()["LoadBalancers"]]


def terminate(endpoint, instance):
    client(endpoint, "ec2").terminate_instances(InstanceIds=[instance])


def stop(endpoint, instance):
    client(endpoint, "ec2").stop_instances(InstanceIds=[instance])


COMMANDS = {command.__name__: command for command in (set_up, routes, balancers, terminate, stop)}

if __name__ == "__main__":
    print(json.dumps(COMMANDS[sys.argv[1]](*sys.argv[2:])))
